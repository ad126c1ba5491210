"""The doubles do what a test tells them to; that they are like real models is in test_models_contract.py."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from brain_pipeline.errors import ModelOverloaded
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

ASK = [ChatMessage(role=MessageRole.SYSTEM, content="Be kind."), ChatMessage(role=MessageRole.USER, content="When?")]


def test_one_answer_for_every_call():
    llm = ScriptedLLM("Friday.")
    assert [llm.chat(ASK).message.content for _ in range(3)] == ["Friday."] * 3


def test_answers_in_turn_the_last_one_for_good():
    llm = ScriptedLLM(["Friday.", "Saturday."])
    assert [llm.complete("When?").text for _ in range(3)] == ["Friday.", "Saturday.", "Saturday."]


def test_an_answer_from_the_messages():
    llm = ScriptedLLM(lambda messages: messages[-1].content.upper())
    assert llm.chat(ASK).message.content == "WHEN?"


def test_an_exception_is_raised_in_its_turn():
    llm = ScriptedLLM([ModelOverloaded("busy"), "Friday."])
    with pytest.raises(ModelOverloaded):
        asyncio.run(llm.achat(ASK))
    assert llm.chat(ASK).message.content == "Friday."


def test_an_exception_ends_a_stream():
    with pytest.raises(ModelOverloaded):
        list(ScriptedLLM(ModelOverloaded("busy")).stream_chat(ASK))


def test_it_remembers_what_it_was_asked():
    llm = ScriptedLLM()
    llm.chat(ASK)
    list(llm.stream_complete("And then?"))
    assert llm.calls == 2
    assert llm.prompts == ["Be kind.\n\nWhen?", "And then?"]
    assert [message.role for message in llm.conversations[0]] == [MessageRole.SYSTEM, MessageRole.USER]


def test_two_doubles_remember_apart():
    first, second = ScriptedLLM(), ScriptedLLM()
    first.chat(ASK)
    assert (first.calls, second.calls) == (1, 0)


def test_threads_share_a_script():
    llm = ScriptedLLM([str(number) for number in range(40)])
    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda _: llm.complete("Next?").text, range(40)))
    assert len(answers) == llm.calls == 40


def test_shared_words_are_near():
    question, near, far = np.array(
        HashedTokenEmbedder().get_text_embedding_batch(
            ["zoo trip money", "The zoo trip: bring money, please.", "Dentist moved to Monday afternoon."]
        )
    )
    assert question @ near > 0.5
    assert question @ far < 0.2


def test_case_and_diacritics_do_not_matter():
    embedder = HashedTokenEmbedder()
    assert embedder.get_text_embedding("Réunion ÉCOLE straße") == embedder.get_text_embedding("reunion ecole STRASSE")


@pytest.mark.parametrize("dimension", [1, 8, 768])
@pytest.mark.parametrize("text", ["", "!?", "zoo", "zoo zoo trip"])
def test_every_text_has_unit_length(dimension, text):
    vector = HashedTokenEmbedder(dimension=dimension).get_text_embedding(text)
    assert len(vector) == dimension
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_vectors_are_the_same_in_every_process():
    program = "from brain_pipeline.testing import *; print(HashedTokenEmbedder().get_text_embedding('zoo trip'))"
    found = {
        subprocess.run(  # noqa: S603
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{HashedTokenEmbedder().get_text_embedding('zoo trip')}\n"}

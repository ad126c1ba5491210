from __future__ import annotations

import re
from datetime import UTC

import pytest
from household import SLIP, mail
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.index.chunk import CHUNK_TOKENS, chunk_mail, fingerprint, mail_key, sentences, split_text
from brain_pipeline.models.tokens import token_counter
from brain_pipeline.records import Attachment


def words(text):
    return len(text.split())


@given(st.text())
def test_sentences_lose_nothing(text):
    assert "".join(sentences(text)) == text


def test_sentences_end_where_a_reader_says():
    text = "Dr. Voss wrote. Bring $5!\nTuesday, 3 p.m. at St. Anne's? “Yes.” ¡Vamos! Ende."
    assert [s.strip() for s in sentences(text)] == [
        *("Dr. Voss wrote.", "Bring $5!", "Tuesday, 3 p.m. at St. Anne's?", "“Yes.”", "¡Vamos!", "Ende."),
    ]


@given(st.text(), st.integers(5, 50), st.integers(0, 10))
def test_passages_keep_every_word_in_order_and_the_budget(text, budget, overlap):
    passages = split_text(text, words, budget, overlap)
    assert all(0 < words(passage) <= budget for passage in passages)
    rest = re.sub(r"\s", "", text)
    for passage in passages:
        squeezed = re.sub(r"\s", "", passage)
        # What a passage repeats was said before; what is new continues the text exactly.
        repeated = next(
            n
            for n in range(len(squeezed) + 1)
            if (rest.startswith(squeezed[n:]) and n < len(squeezed)) or n == len(squeezed)
        )
        rest = rest[len(squeezed) - repeated :]
    assert rest == ""


def test_a_day_and_what_happens_on_it_share_a_passage():
    text = "One two three four five six. On Friday the ninth. We leave for the zoo. Seven eight nine ten."
    passages = split_text(text, words, 11, 5)
    assert any("Friday the ninth. We leave" in passage for passage in passages)


def test_a_word_longer_than_a_passage_is_cut_not_lost():
    passages = split_text("x" * 1000, len, 100, 10)
    assert "".join(passages) == "x" * 1000


def chunks(of):
    return chunk_mail(of, zone=UTC, count=token_counter())


def test_subject_and_day_are_embedded_and_not_stored():
    (chunk,) = chunks(SLIP)
    assert chunk.row.text == SLIP.text
    assert chunk.embedded.startswith("Field Trip Permission Slip\nMonday 15 September 2025\n\n")


def test_the_same_mail_has_the_same_ids_and_another_has_others():
    long = mail("Long", "A sentence about elephants. " * 300)
    assert [c.row.id for c in chunks(long)] == [c.row.id for c in chunks(long)]
    assert len({c.row.id for c in chunks(long)}) == len(chunks(long)) > 3
    assert not {c.row.id for c in chunks(long)} & {c.row.id for c in chunks(SLIP)}


def test_what_is_embedded_fits_the_model():
    long = mail("An endless subject " * 40, "Elephants walk slowly through the park. " * 300)
    assert all(token_counter()(chunk.embedded) <= CHUNK_TOKENS + 10 for chunk in chunks(long))


def test_attachments_and_quoted_history_are_chunks_of_their_own():
    full = mail(
        "Flyer",
        "See the flyer.",
        quoted="> Is there a flyer?",
        attachments=(
            Attachment("flyer.pdf", "application/pdf", "The fair is on May 3."),
            Attachment("a.jpg", "image/jpeg"),
        ),
    )
    parts = [(c.row.metadata["part"], c.row.text) for c in chunks(full)]
    assert parts == [
        ("text", "See the flyer."),
        ("attachment", "In the attachment flyer.pdf:\nThe fair is on May 3."),
        ("attachment", "Attached: a.jpg"),
        ("quoted", "> Is there a flyer?"),
    ]


def test_a_mail_without_text_is_still_one_chunk():
    (chunk,) = chunks(mail("Just a subject", ""))
    assert chunk.row.text == ""
    assert "Just a subject" in chunk.embedded


def test_copies_under_other_ids_share_a_fingerprint():
    copy = mail(SLIP.subject, f"{SLIP.text}\n", message_id="<copy@school.example>")
    assert fingerprint(copy) == fingerprint(SLIP)
    here, there = (mail("News", f"Fair on May 3. Read on (https://n.example/{who})") for who in ("mum", "dad"))
    assert fingerprint(here) == fingerprint(there)
    assert fingerprint(mail(SLIP.subject, SLIP.text, day=16)) != fingerprint(SLIP)
    assert fingerprint(mail("Empty", "")) == ""


def test_a_mail_without_an_id_is_known_by_what_it_says():
    nameless = mail(SLIP.subject, SLIP.text, message_id="")
    assert mail_key(nameless) == mail_key(mail(SLIP.subject, SLIP.text, message_id=""))
    assert mail_key(nameless) != mail_key(mail(SLIP.subject, "Other words.", message_id=""))


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\x00", "🙂" * 5000, "a\u0301" * 3000, "字" * 3000])
def test_strange_text_becomes_chunks(text):
    assert chunks(mail("Strange", text))

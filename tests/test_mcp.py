"""The brain as an assistant's tools, spoken to by the protocol's own client library over a real process's pipes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import anyio
import pytest
from household import HOUSEHOLD, fill
from mcp import Client, StdioServerParameters, stdio_client
from service import Service

from brain_pipeline import Settings, open_brain
from brain_pipeline.brain import Brain
from brain_pipeline.errors import ConfigError
from brain_pipeline.mcp_server import build_server
from brain_pipeline.records import NOT_FOUND
from brain_pipeline.testing import HashedTokenEmbedder, ScriptedLLM

QUESTION = "What do we need for the zoo field trip?"
FOUND = "Found in: Field Trip Permission Slip, 2025-09-15"
SERVER = [sys.executable, "-m", "brain_pipeline.cli", "mcp"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables that lead a process to a small household with the embedded model."""
    folder = tmp_path_factory.mktemp("mcp")
    with open_brain(Settings.load(environment="embedded", data_dir=folder, timezone="UTC")) as brain:
        fill(brain, HOUSEHOLD)
    return {"BRAIN_ENV": "embedded", "BRAIN_DATA_DIR": str(folder), "BRAIN_TIMEZONE": "UTC"}


def conversation(environment, *calls):
    """The names of the tools, and what each call of one gives."""

    async def talk():
        command = StdioServerParameters(command=SERVER[0], args=SERVER[1:], env={**os.environ, **environment})
        async with Client(stdio_client(command)) as client:
            listed = await client.list_tools()
            return [tool.name for tool in listed.tools], [await client.call_tool(*call) for call in calls]

    return anyio.run(talk)


def test_an_assistant_gets_sourced_answers(environment):
    names, (answered, found, unknown, counted) = conversation(
        environment,
        ("ask", {"question": QUESTION}),
        ("search", {"question": QUESTION}),
        ("ask", {"question": "Who won the chess olympiad?", "source": "newsletter"}),
        ("stats", {}),
    )
    assert names == ["ask", "search", "stats"]
    assert answered.structured_content["sources"] == [FOUND]
    assert "signed permission slip and $5" in answered.structured_content["answer"]
    assert json.loads(answered.content[0].text) == answered.structured_content
    first = found.structured_content["emails"][0]
    assert (first["attribution"], first["sender"]) == (FOUND, "Ms. Okafor <okafor@school.example>")
    assert first["passage"].endswith("Every child needs a signed permission slip and $5 for the zoo field trip.")
    assert unknown.structured_content == {"answer": NOT_FOUND, "sources": [], "confidence": "low"}
    assert counted.structured_content["total_documents"] == 4
    assert not any(result.is_error for result in (answered, found, unknown, counted))


def test_while_a_service_owns_the_database_it_is_asked(environment, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Service(port, environment, tmp_path / "log"):
        _, (answered, found, counted) = conversation(
            environment, ("ask", {"question": QUESTION}), ("search", {"question": QUESTION}), ("stats", {})
        )
    assert answered.structured_content["sources"] == [FOUND]
    assert found.structured_content["emails"][0]["passage"].endswith("for the zoo field trip.")
    assert counted.structured_content["total_documents"] == 4


def test_what_goes_wrong_is_told_to_the_assistant(environment):
    broken = {**environment, "BRAIN_EMBED_PROVIDER": "ollama", "OLLAMA_BASE_URL": "http://127.0.0.1:9"}
    _, (blank, unreachable) = conversation(broken, ("ask", {"question": " "}), ("ask", {"question": QUESTION}))
    assert (blank.is_error, unreachable.is_error) == (True, True)
    assert "question is empty" in blank.content[0].text
    assert "127.0.0.1:9" in unreachable.content[0].text


def test_nothing_but_the_protocol_is_on_standard_output(environment):
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "stats", "arguments": {}}},
    ]
    with subprocess.Popen(  # noqa: S603  (our own command)
        SERVER,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        process.stdin.flush()
        said = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.close()
        assert process.stdout.read() == ""
    assert [each["id"] for each in said] == [1, 2]
    assert process.returncode == 0


def test_the_database_is_given_up_after_each_call(tmp_path):
    settings = Settings.load(data_dir=tmp_path, timezone="UTC")
    brain = fill(Brain(settings, embedder=HashedTokenEmbedder(), llm=ScriptedLLM("A slip.")), HOUSEHOLD)

    async def call():
        async with Client(build_server(lambda: brain)) as client:
            return await client.call_tool("ask", {"question": QUESTION})

    assert anyio.run(call).structured_content["answer"].startswith("A slip.")
    assert not brain.catalog.store.ownership._lock.is_locked


def test_without_the_extra_it_says_what_to_install(monkeypatch, command):
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(ConfigError, match=r"family-brain\[mcp\]"):
        build_server(lambda: None)
    status, out, err = command("mcp")
    assert (status, out) == (1, "")
    assert "family-brain[mcp]" in err

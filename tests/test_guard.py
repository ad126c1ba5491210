"""Which servers may be connected to, when names and addresses are hostile."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import httpx
import pytest
from household import settings_for
from hypothesis import given
from hypothesis import strategies as st

from api import create_app
from brain_pipeline import open_brain
from brain_pipeline.doctor import diagnose
from brain_pipeline.errors import ConfigError, ModelError, ModelUnreachable
from brain_pipeline.models import build_embedder, build_llm
from brain_pipeline.models.guard import Guard, GuardedTransport, is_household, require_household
from brain_pipeline.settings import Settings

PUBLIC = "93.184.215.14"


@pytest.fixture
def names(monkeypatch):
    """A name server of the test's own: what it does not know, nobody knows."""
    known = {}
    real = socket.getaddrinfo

    def look_up(host, port, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        if name not in known:
            return real(name, port, *args, **{**kwargs, "flags": socket.AI_NUMERICHOST})
        found = known[name]() if callable(known[name]) else known[name]
        return [entry for address in found for entry in real(address, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.20"),
        *(
            "169.254.3.4",
            "fe80::1",
            "fe80::1%eth0",
            "fd12:3456::1",
            "100.64.0.1",
            "100.127.255.254",
            "::ffff:192.168.0.9",
        ),
        *("fd7a:115c:a1e0::53",),
    ],
)
def test_the_household(address):
    assert is_household(address)


@pytest.mark.parametrize(
    "address",
    [
        *(
            PUBLIC,
            "8.8.8.8",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "192.169.0.1",
            "11.0.0.1",
            "2606:4700::1111",
        ),
        *("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "224.0.0.1", "not an address", ""),
    ],
)
def test_not_the_household(address):
    assert not is_household(address)


@given(st.ip_addresses())
def test_no_address_that_the_internet_routes_is_the_household_s(address):
    assert not (is_household(str(address)) and address.is_global)


@pytest.mark.parametrize(
    "url",
    [
        *(
            f"http://{PUBLIC}:11434",
            f"https://{PUBLIC}",
            PUBLIC,
            "http://[2606:4700::1111]:11434",
            "http://models.example",
        ),
        *("HTTP://MODELS.EXAMPLE.:11434/path", "models.example:11434", "http://both.example"),
    ],
)
def test_a_public_server_is_refused_by_name(names, url):
    names |= {"models.example": [PUBLIC], "both.example": ["192.168.1.4", PUBLIC]}
    with pytest.raises(ConfigError, match=r"models\.example|both\.example|93\.184|2606:4700") as refused:
        Guard().require(url)
    assert "BRAIN_ALLOW_PUBLIC_HOSTS" in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://127.0.0.1:11434",
            "http://[::1]:11434",
            "http://pc.lan:11434",
            "pc.lan",
            "http://100.101.102.103:11434",
        ),
        *("http://gaming-pc.tail0123.ts.net:11434", "http://asleep.example:11434", "http://2130706433", ""),
    ],
)
def test_the_household_s_servers_and_unknown_names_pass(names, url):
    names["pc.lan"] = ["192.168.1.20"]
    Guard().require(url)


def test_an_allowed_host_passes_by_its_exact_name(names):
    names |= {"models.example": [PUBLIC], "x.models.example": [PUBLIC]}
    guard = Guard.of(["Models.Example"])
    guard.require("https://models.example")
    assert guard.addresses("models.example", 443, 1) == [PUBLIC]
    with pytest.raises(ConfigError):
        guard.require("https://x.models.example")


@pytest.mark.parametrize("which", ["ollama_base_url", "llm_url", "llm_fallback_url", "chroma_url"])
def test_every_server_is_looked_at_when_the_brain_or_the_service_starts(ollama, which):
    settings = settings_for(ollama.url, **{which: f"http://{PUBLIC}:11434"})
    for start in (require_household, open_brain, create_app):
        with pytest.raises(ConfigError, match=PUBLIC):
            start(settings)
    allowed = settings.model_copy(update={"allow_public_hosts": (PUBLIC,)})
    require_household(allowed)


def test_doctor_names_a_public_server(ollama):
    findings = list(diagnose(settings_for(ollama.url, llm_url=f"http://{PUBLIC}:11434")))
    assert any(not finding.ok and PUBLIC in finding.remedy for finding in findings)


def test_a_name_is_pinned_to_the_address_that_was_looked_at(names, ollama):
    port = int(ollama.url.rpartition(":")[2])
    names["pc.lan"] = ["127.0.0.1"]
    settings = settings_for(f"http://pc.lan:{port}")
    embedder, llm = build_embedder(settings), build_llm(settings)
    assert embedder.get_query_embedding("slip") == asyncio.run(embedder.aget_query_embedding("slip"))
    assert llm.complete("x").text == ollama.reply
    assert {request.headers["host"] for request in ollama.requests} == {f"pc.lan:{port}"}
    embedder.close()
    llm.close()


def test_a_name_that_rebinds_after_the_start_leads_nowhere(names, ollama, monkeypatch):
    turns = iter([["127.0.0.1"], [PUBLIC], [PUBLIC]])
    names["pc.lan"] = lambda: next(turns)
    url = f"http://pc.lan:{ollama.url.rpartition(':')[2]}"
    Guard().require(url)
    connected = []
    monkeypatch.setattr(socket, "create_connection", lambda address, *_, **__: connected.append(address))
    embedder = build_embedder(settings_for(url))
    with pytest.raises(ModelUnreachable, match=r"pc\.lan has the address 93"):
        embedder.get_query_embedding("slip")
    with pytest.raises(ModelUnreachable, match=r"pc\.lan has the address 93"):
        asyncio.run(embedder.aget_query_embedding("slip"))
    embedder.close()
    assert connected == []
    assert ollama.requests == []


def test_a_tailscale_name_with_a_public_address_leads_nowhere(names, ollama):
    names["pc.tail0123.ts.net"] = [PUBLIC]
    embedder = build_embedder(settings_for("http://pc.tail0123.ts.net:11434"))
    with pytest.raises(ModelUnreachable, match=PUBLIC):
        embedder.get_query_embedding("slip")
    embedder.close()


def test_the_next_address_is_tried_when_one_refuses(names, ollama):
    names["pc.lan"] = ["127.0.0.9", "127.0.0.1"]  # the server listens on the second only
    embedder = build_embedder(settings_for(f"http://pc.lan:{ollama.url.rpartition(':')[2]}"))
    assert embedder.get_query_embedding("slip")
    assert asyncio.run(embedder.aget_query_embedding("slip"))
    embedder.close()


@pytest.mark.parametrize("name", ["nobody.lan", "x" * 70 + ".lan"])
def test_a_name_that_nobody_knows_is_an_unreachable_server(names, name):
    embedder = build_embedder(settings_for(f"http://{name}:11434"))
    for embed in (embedder.get_query_embedding, lambda text: asyncio.run(embedder.aget_query_embedding(text))):
        with pytest.raises(ModelUnreachable):
            embed("slip")
    embedder.close()


def test_a_name_server_that_hangs_is_waited_for_no_longer_than_a_connection(names):
    release = threading.Event()
    names["pc.lan"] = lambda: release.wait(20) and []
    embedder = build_embedder(settings_for("http://pc.lan:11434"))
    for embed in (embedder.get_query_embedding, lambda text: asyncio.run(embedder.aget_query_embedding(text))):
        began = time.monotonic()
        with pytest.raises(ModelUnreachable):
            embed("slip")
        assert time.monotonic() - began < 1.5
    release.set()
    embedder.close()


def test_ipv6_addresses_are_reached(names):
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        port = listener.getsockname()[1]

        def answer():
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        names["pc.lan"] = ["::1"]
        with httpx.Client(transport=GuardedTransport(Guard())) as client:
            assert client.get(f"http://pc.lan:{port}/").text == "ok"
        thread.join()


@pytest.mark.parametrize("name", ["ollama_base_url", "llm_url", "llm_fallback_url", "chroma_url"])
@pytest.mark.parametrize("url", ["http://user:s3cret@pc.lan:11434", "user:s3cret@pc.lan"])
def test_an_address_with_a_password_is_refused_and_not_repeated(name, url):
    with pytest.raises(ConfigError) as refused:
        Settings.load(**{name: url})
    assert "password" in str(refused.value)
    assert "s3cret" not in str(refused.value) + repr(refused.value.__cause__)


def test_a_server_that_redirects_elsewhere_is_not_followed(ollama):
    from ollama_server import Fault  # noqa: PLC0415

    ollama.location = f"http://{PUBLIC}/api/embed"
    ollama.fail(Fault.REDIRECT)
    embedder = build_embedder(settings_for(ollama.url))
    with pytest.raises(ModelError, match="elsewhere"):
        embedder.get_query_embedding("slip")
    embedder.close()

"""A household's day in a process of its own: mail comes in, is served and asked about. Prints where it tried to reach.

Run by ``test_local_only``, as it is and where no network but loopback exists.
"""

from __future__ import annotations

import atexit
import fcntl
import ipaddress
import json
import os
import re
import socket
import struct
import sys
import time
from pathlib import Path

ATTEMPTS: list[str] = []
LATEST = 11.0  # seconds; onnxruntime, unless it is told not to, reports its use nine seconds after a model was loaded
PLACES = {"socket.connect": 1, "socket.sendto": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0}


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: keeps every address and name outside this machine that Python code asks for."""
    if event not in PLACES:
        return
    place = arguments[PLACES[event]]
    host = place[0] if isinstance(place, tuple) else place
    name = host.decode() if isinstance(host, bytes) else host
    if isinstance(name, str) and not name.startswith("/") and not is_this_machine(name):
        ATTEMPTS.append(f"{event} {name}")


def is_this_machine(name: str) -> bool:
    if name in {"", "localhost", socket.gethostname()}:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def loopback_up() -> None:
    """Switches loopback on in a fresh network namespace, as ``ip link set lo up`` does."""
    up = struct.pack("16sH14x", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, up)  # SIOCSIFFLAGS


def unroutable() -> int:
    """How often the kernel was asked, by any code, to send where no route leads."""
    counted = 0
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Ip:"))
    counted += int(dict(zip(names, values, strict=True))["OutNoRoutes"])
    if found := re.search(r"^Ip6OutNoRoutes\s+(\d+)", Path("/proc/net/snmp6").read_text(), re.MULTILINE):
        counted += int(found[1])
    return counted


def reach_out() -> None:
    """What must be noticed: one attempt that Python's audit sees, one that only the kernel does."""
    import ctypes  # noqa: PLC0415

    with socket.socket() as seen:
        seen.settimeout(0.1)
        seen.connect_ex(("192.0.2.7", 9))
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.socket(socket.AF_INET, socket.SOCK_DGRAM, 0)
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", 9, socket.inet_aton("192.0.2.8"))
    libc.connect(handle, address, len(address))
    os.close(handle)


def a_day(folder: Path) -> float:
    """Imports all, brings mail in and asks, with the embedded models and with model servers.

    Returns:
        When the embedded model had been loaded, by the monotonic clock.
    """
    import httpx  # noqa: PLC0415
    from household import settings_for  # noqa: PLC0415
    from live import served  # noqa: PLC0415
    from ollama_server import OllamaServer  # noqa: PLC0415

    from api import create_app  # noqa: PLC0415
    from brain_pipeline import open_brain  # noqa: PLC0415
    from brain_pipeline.cli.commands.demo import FIRST_QUESTION  # noqa: PLC0415
    from brain_pipeline.doctor import diagnose  # noqa: PLC0415
    from brain_pipeline.mail.mailboxes import iter_messages  # noqa: PLC0415
    from brain_pipeline.sample import sample_mail  # noqa: PLC0415
    from brain_pipeline.settings import Settings  # noqa: PLC0415

    loaded: list[float] = []
    with OllamaServer(reply="Sullivan needs a slip.") as ollama:
        for settings in (
            Settings.load(environment="embedded", chroma_db_path=folder / "embedded"),
            settings_for(ollama.url, chroma_db_path=folder / "ollama", warm_up=True),
        ):
            list(diagnose(settings))
            with open_brain(settings) as brain, served(create_app(brain=brain)) as url:
                brain.warm_up()
                loaded.append(time.monotonic())
                brain.ingest(iter_messages([sample_mail()]))
                client = httpx.Client(base_url=url, timeout=60)
                answer = client.get("/brain/query", params={"q": FIRST_QUESTION})
                assert answer.json()["sources"], answer.text
                for path in ("/", "/healthz", "/brain/stats", "/brain/query/stream?q=slip", "/openapi.json"):
                    assert client.get(path).status_code == 200, path
                assert brain.index.as_retriever().retrieve("field trip")
    return loaded[0]


def report(before: int) -> None:
    sys.stdout.write(json.dumps({"attempts": ATTEMPTS, "unroutable": unroutable() - before}))


if __name__ == "__main__":
    mode, place = sys.argv[1:]
    if mode != "watched":
        loopback_up()
    sys.addaudithook(watch)
    atexit.register(report, unroutable())  # registered first, it comes after what libraries send when they end
    if mode == "reaching":
        reach_out()
    else:
        loaded = a_day(Path(place))
        time.sleep(max(0.0, loaded + LATEST - time.monotonic()))

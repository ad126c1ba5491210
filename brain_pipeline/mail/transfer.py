"""Content transfer encodings, undone however they were damaged or mislabelled."""

from __future__ import annotations

import binascii
import re

from brain_pipeline.mail.headers import decode_base64

_BASE64_LINE = re.compile(rb"[A-Za-z0-9+/]{4,}={0,3}[ \t]*")
_PROSE = re.compile(rb"[A-Za-z]{2,}[,.;:!?]?[ \t]+[A-Za-z]{2,}")
_PADDED_BREAK = re.compile(rb"=[ \t]+\r?\n")
_UU_BEGIN = re.compile(r"^begin(?:-base64)? [0-7]{3,4} (\S[^\r\n]*)\r?\n", re.MULTILINE)
_UU_END = re.compile(r"^(?:end|====)[ \t]*\r?$\n?", re.MULTILINE)
_UU_FIRST_LINE = re.compile(r"[ -z]{1,90}\r?$", re.MULTILINE)
_ALL_BASE64 = re.compile(rb"\s*(?:[A-Za-z0-9+/]{40,}\r?\n)+[A-Za-z0-9+/]*={0,2}\s*")


def undo(body: bytes, encoding: str, *, is_text: bool) -> bytes:
    """``body`` as it was before its ``Content-Transfer-Encoding``; an unknown encoding is taken for none.

    ``is_text`` allows for a wrong label: prose that claims to be base64, and base64 that claims to be nothing.
    """
    if encoding == "base64":
        return _undo_base64(body, is_text=is_text)
    if encoding == "quoted-printable":
        return binascii.a2b_qp(_PADDED_BREAK.sub(b"=\n", body))
    if encoding in {"uuencode", "x-uuencode", "x-uue", "uue"}:
        return _undo_uuencode(body)
    if is_text and is_base64(body):
        decoded = _undo_base64(body, is_text=False)
        return body if b"\0" in decoded or not _is_utf8(decoded) else decoded
    return body


def is_base64(body: bytes) -> bool:
    """Whether ``body`` is lines of base64 and nothing else."""
    return bool(_ALL_BASE64.fullmatch(body))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _undo_base64(body: bytes, *, is_text: bool) -> bytes:
    """Base64; of a text also the plain lines that a mailing list added below, or all of it when it is prose."""
    if not is_text or not _PROSE.search(body):
        return _base64_runs(body)
    lines = body.splitlines(keepends=True)
    first_prose = next((n for n, line in enumerate(lines) if _PROSE.search(line)), len(lines))
    encoded = lines[:first_prose]
    while encoded and not _BASE64_LINE.fullmatch(encoded[-1].strip()):
        encoded.pop()
    plain = b"".join(lines[len(encoded) :])
    decoded = _base64_runs(b"".join(encoded))
    return decoded + b"\n" + plain if decoded else plain


def _base64_runs(body: bytes) -> bytes:
    """Each padded run on its own: encoders that work block by block put padding in the middle."""
    try:
        return binascii.a2b_base64(body, strict_mode=True)
    except binascii.Error:
        compact = body.translate(None, b" \t\r\n")
    return b"".join(decode_base64(run.decode("latin-1")) for run in compact.split(b"=") if run)


def _undo_uuencode(body: bytes) -> bytes:
    text = body.decode("latin-1")
    begin = _UU_BEGIN.search(text)
    start = begin.end() if begin else 0
    end = _UU_END.search(text, start)
    return _uu_lines(text[start : end.start() if end else len(text)])


def _uu_lines(text: str) -> bytes:
    decoded = []
    for line in text.splitlines():
        raw = line.encode("latin-1", "replace")
        try:
            decoded.append(binascii.a2b_uu(raw))
        except binascii.Error:
            # Some encoders pad the last group wrongly: believe the length that the line begins with.
            length = (((raw[0] - 32) & 63) * 4 + 5) // 3
            try:
                decoded.append(binascii.a2b_uu(raw[:length]))
            except binascii.Error:
                continue
    return b"".join(decoded)


def extract_uuencoded(text: str) -> tuple[str, list[tuple[str, bytes]]]:
    """``text`` without the files that are uuencoded in it, and those files as ``(name, content)``."""
    files: list[tuple[str, bytes]] = []
    kept: list[str] = []
    position = 0
    while begin := _UU_BEGIN.search(text, position):
        end = _UU_END.search(text, begin.end())
        if end is None or not _UU_FIRST_LINE.match(text, begin.end()):
            break
        content = text[begin.end() : end.start()]
        base64 = begin[0].startswith("begin-base64")
        files.append((begin[1].strip(), decode_base64(content) if base64 else _uu_lines(content)))
        kept.append(text[position : begin.start()])
        position = end.end()
    return "".join([*kept, text[position:]]), files

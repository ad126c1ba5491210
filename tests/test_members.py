"""Whom of the family a mail concerns: learning, forgetting, abstaining, and mail that was there before a rule."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from household import HOUSEHOLD, PIANO, SLIP, fill, mail
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.brain import Brain
from brain_pipeline.errors import InvalidRequest
from brain_pipeline.family.measure import LABELLED, read_members
from brain_pipeline.family.members import FREE_MAIL, LEAST, Kind, Pattern, assign, own_names, patterns, together
from brain_pipeline.family.membership import Membership
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder

MEMBERS = ("Sullivan", "Hazel", "Noor")
RULES = st.lists(
    st.tuples(
        st.sampled_from(
            ["sender:a@school.example", "domain:school.example", "list:otters", "subject:zoo", "name:sully"]
        ).map(Pattern.parse),
        st.sampled_from(MEMBERS),
    ),
    max_size=12,
)
MAIL = patterns(
    sender="Ms. A <A@school.example>",
    list_id="Otters <otters>",
    subject="The zoo",
    text="Sully, bring",
    names=["sulli"],
)


def learned(rules):
    return together(*({pattern: {member: 1}} for pattern, member in rules))


def members_of(found):
    return [each.member for each in found]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("sender: Coach@Gulls.example ", "sender:coach@gulls.example"),
        ("DOMAIN:@gulls.example", "domain:gulls.example"),
        ("list:Heron Highlights <highlights.birchfield.example>", "list:highlights.birchfield.example"),
        ("subject:Recitals", "subject:recit"),
        ("name:S. Tolliver", "name:s tolliv"),
        ("email:<a:b@c>", "email:<a:b@c>"),
    ],
)
def test_a_pattern_is_written_one_way(text, pattern):
    assert str(Pattern.parse(text)) == pattern
    assert Pattern.written(pattern) == Pattern.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "coach@gulls.example",
        "sender:coach",
        "domain:gulls",
        "domain:gmail.com",
        "subject:spring recital",
        "list:",
        "x:y",
    ],
)
def test_what_is_no_pattern_is_refused_with_what_to_write(text):
    with pytest.raises(InvalidRequest, match="Write one as sender:"):
        Pattern.parse(text)


def test_a_free_mail_domain_is_no_evidence():
    for domain in FREE_MAIL:
        assert {p.kind for p in patterns(sender=f"x@{domain}")} == {"sender"}


def test_an_assignment_says_why():
    rules = {Pattern.parse("domain:lincoln.example"): {"Sullivan": 14, "Hazel": 1}}
    (found,) = assign(patterns(sender="Office <office@lincoln.example>"), rules)
    assert found.why == "sender @lincoln.example was Sullivan's 14 of 15 times"
    assert found.probability == pytest.approx(15 / 17)


def test_one_word_is_enough_and_a_contradiction_is_not_guessed():
    sender = Pattern.parse("sender:a@school.example")
    assert members_of(assign(MAIL, {sender: {"Sullivan": 1}})) == ["Sullivan"]
    assert assign(MAIL, {sender: {"Sullivan": 1, "Hazel": 1}}) == ()
    assert members_of(assign(MAIL, {sender: {"Sullivan": 1, "Hazel": 3}})) == ["Hazel"]


def test_the_most_exact_origin_counts():
    rules = {
        Pattern.parse("domain:school.example"): {"Hazel": 50},
        Pattern.parse("sender:a@school.example"): {"Noor": 2},
    }
    assert members_of(assign(MAIL, rules)) == ["Noor"]


def test_a_mail_may_concern_several_and_names_decide_where_the_sender_writes_about_all():
    own = own_names({"Sullivan": ["Sully"], "Hazel": [], "Noor": []})
    names = [pattern.value for pattern in own]
    office = {Pattern.parse("sender:office@school.example"): {"Sullivan": 5, "Hazel": 5}}
    rules = together(own, office)

    def whose(text):
        return members_of(assign(patterns(sender="office@school.example", text=text, names=names), rules))

    assert whose("Sully needs a slip.") == ["Sullivan"]
    assert set(whose("Hazel and Sullivan need slips.")) == {"Hazel", "Sullivan"}
    assert whose("All children need slips.") == []


def test_one_mail_that_somebody_assigned_is_theirs_whatever_else_is_said():
    rules = {Pattern.parse("email:<1>"): {"Noor": 3}, Pattern.parse("sender:a@school.example"): {"Hazel": 50}}
    (found,) = assign(MAIL | {Pattern("email", "<1>")}, rules)
    assert (found.member, found.why) == ("Noor", "somebody said that it is Noor's")


@given(RULES, st.randoms(use_true_random=False))
def test_learning_does_not_depend_on_the_order(rules, chance: random.Random):
    shuffled = chance.sample(rules, len(rules))
    assert assign(MAIL, learned(rules)) == assign(MAIL, learned(shuffled))


@given(RULES)
def test_whoever_is_assigned_is_probable_and_was_learned_of(rules):
    for found in assign(MAIL, learned(rules)):
        assert LEAST <= found.probability <= 1
        assert found.member in {member for _, member in rules}


@given(st.text(), st.text(), st.text(), st.text())
def test_any_text_is_looked_up(sender, list_id, subject, text):
    found = patterns(sender=sender, list_id=list_id, subject=subject, text=text, names=["sulli"], email=text)
    assert all(Pattern.written(str(pattern)) == pattern for pattern in found)
    assign(found, {pattern: {"Hazel": 2} for pattern in found})


@given(st.text() | st.builds("{}:{}".format, st.sampled_from(get_args(Kind)), st.text(st.characters())))
def test_any_text_is_a_pattern_or_refused(text):
    try:
        pattern = Pattern.parse(text)
    except InvalidRequest:
        return
    assert Pattern.parse(str(pattern)).kind == pattern.kind
    str(pattern).encode()


@given(rules=RULES, forgotten=RULES)
def test_forgetting_undoes_learning_for_all_mail(rules, forgotten, tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    kept, plain = (Membership(folder / name, {}) for name in ("kept", "plain"))
    kept.keep({"<1>": MAIL})
    for pattern, member in [*rules, *forgotten]:
        kept.learn(pattern, member)
    for pattern, member in forgotten:
        kept.forget(pattern, member)
    left = [rule for rule in rules if rule not in forgotten]
    for pattern, member in left:
        plain.learn(pattern, member)
    plain.keep({"<1>": MAIL})
    assert kept.learned == plain.learned == learned(left)
    assert kept.assigned(["<1>"]) == plain.assigned(["<1>"])
    kept.close()
    again = Membership(folder / "kept", {})
    assert again.learned == plain.learned
    again.close()
    plain.close()


@pytest.fixture
def brain(tmp_path):
    settings = Settings.load(
        chroma_db_path=tmp_path / "chroma",
        timezone="America/Chicago",
        members={"Sullivan": ["Sully"], "Hazel": []},
        llm_provider="excerpts",
    )
    with Brain(settings, embedder=HashedTokenEmbedder()) as opened:
        yield opened


def whose(brain, one):
    return [each.member for each in brain.people.of([one.message_id]).get(one.message_id, ())]


def test_a_new_rule_applies_to_mail_that_is_there_and_to_mail_that_comes(brain, monkeypatch):
    fill(brain)
    monkeypatch.setattr(HashedTokenEmbedder, "_get_text_embedding", None)  # nothing is embedded again
    assert whose(brain, PIANO) == []
    brain.learn_assignment("subject:recital", "Hazel")
    assert whose(brain, PIANO) == ["Hazel"]
    monkeypatch.undo()
    next_year = replace(PIANO, message_id="<next@school.example>", text="The recital is on Monday at five.")
    fill(brain, [next_year])
    assert whose(brain, next_year) == ["Hazel"]
    assert brain.people.forget(Pattern.parse("subject:recital")) == 1
    assert whose(brain, PIANO) == whose(brain, next_year) == []


def test_a_rule_may_be_learned_before_there_is_mail(brain):
    brain.learn_assignment("sender:okafor@school.example", "hazel")
    assert members_of(brain.lookup_assignment(sender="Ms. Okafor <okafor@school.example>")) == ["Hazel"]
    fill(brain)
    assert brain.people.emails_of("Hazel") == {each.message_id for each in HOUSEHOLD}


def test_names_that_are_learned_later_are_found_in_mail_that_is_there(brain):
    note = mail("Costume", "Sir Zoomalot needs a cape.", sender_address="aunt@post.example")
    fill(brain, [*HOUSEHOLD, note])
    brain.learn_assignment("name:Sir Zoomalot", "Sullivan")
    assert whose(brain, note) == ["Sullivan"]
    assert brain.people.emails_of("sully") == {note.message_id}


def test_mail_that_changes_or_goes_takes_its_assignments_along(brain):
    note = mail("Costume", "Sully needs a cape.")
    fill(brain, [note])
    assert whose(brain, note) == ["Sullivan"]
    fill(brain, [replace(note, text="Hazel needs a cape.")])
    assert whose(brain, note) == ["Hazel"]
    brain.forget(note.message_id)
    assert whose(brain, note) == []
    assert [member.emails for member in brain.people.all()] == [0, 0]


def test_a_correction_counts_more_than_what_was_learned_and_teaches_the_sender(brain):
    fill(brain)
    for _ in range(2):
        brain.learn_assignment("sender:okafor@school.example", "Hazel")
    assert whose(brain, SLIP) == ["Hazel"]
    brain.people.correct(SLIP.message_id, "Sullivan")
    assert whose(brain, SLIP) == ["Sullivan"]
    assert whose(brain, PIANO) == ["Hazel"]  # two to one
    brain.people.correct(PIANO.message_id, "Sullivan")
    with pytest.raises(InvalidRequest, match="no such email"):
        brain.people.correct("<none>", "Sullivan")
    with pytest.raises(InvalidRequest, match="needs a name"):
        brain.people.learn(Pattern.parse("subject:zoo"), "  ")


def test_without_members_nothing_is_made(tmp_path):
    settings = Settings.load(chroma_db_path=tmp_path / "chroma", llm_provider="excerpts")
    with Brain(settings, embedder=HashedTokenEmbedder()) as brain:
        fill(brain)
        assert brain.people.of([SLIP.message_id]) == {}
        assert brain.people.all() == []
        assert brain.people.forget(Pattern.parse("subject:zoo")) == 0
        assert not brain.people.path.exists()


def test_renamed_members_are_looked_for_again(brain, tmp_path):
    note = mail("Costume", "Zoom needs a cape.")
    fill(brain, [note])
    brain.people.all()
    brain.close()
    renamed = Settings.load(chroma_db_path=tmp_path / "chroma", members={"Sullivan": ["Zoom"]}, llm_provider="excerpts")
    with Brain(renamed, embedder=HashedTokenEmbedder()) as again:
        assert whose(again, note) == ["Sullivan"]


def test_the_labelled_set_is_learned_from_and_measured(command, tmp_path):
    given = read_members()
    assert (given.learned, len(given.mails)) == (10, 120)
    code, out, _ = command("eval", "--members", "--json")
    figures = json.loads(out)
    assert code == 0
    assert figures["macro_f1"] >= 0.9
    assert figures["macro_f1"] == pytest.approx(np.mean([each["f1"] for each in figures["by_member"].values()]))
    assert "macro F1" in command("eval", "--members")[1]
    untaught = tmp_path / "untaught.jsonl"
    about, *mails = LABELLED.read_text().splitlines()
    untaught.write_text("\n".join([json.dumps({**json.loads(about), "rules": []}), *mails]))
    assert json.loads(command("eval", "--members", "--json", untaught)[1])["macro_f1"] < 0.8  # the rules matter
    untaught.write_text("[]")
    assert "is no set of labelled mails" in command("eval", "--members", untaught)[2]

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain_pipeline.ask.matches import matching_words
from brain_pipeline.ask.question import Question, content_terms, read_question
from brain_pipeline.ask.score import (
    FEATURES,
    MINILM,
    UNKNOWN_MODEL,
    Calibration,
    default_calibration,
    features,
    logistic,
    score,
)
from brain_pipeline.family.when import Window
from brain_pipeline.index.keywords import Entry, KeywordIndex, Passage
from brain_pipeline.index.terms import date_words, terms

MAIL = [
    Entry("zoo", "zoo", "Zoo trip", "Ms. Alvarez", "2025-05-06", "Bring $5 and a signed slip by Friday, May 9."),
    Entry("soccer", "soccer", "Soccer practice", "Coach", "2025-09-02", "Practice moves to Thursdays at field 3."),
    Entry("buns", "buns", "Cardamom buns", "Grandma", "2024-12-07", "Knead the dough and let it rise."),
]


@pytest.fixture(scope="module")
def keywords(tmp_path_factory):
    with KeywordIndex(tmp_path_factory.mktemp("score") / "keywords.sqlite3") as index:
        index.add(MAIL)
        yield index


def passage(text: str) -> Passage:
    return Passage("id", "email", "email", f" {' '.join(terms(text))} ")


def scores_of(question: str, keywords: KeywordIndex, cosine: float = 0.4) -> dict[str, float]:
    asked = read_question(question, keywords, date(2025, 12, 1))
    passages = keywords.passages([entry.id for entry in MAIL])
    found = score(asked, [cosine] * len(passages), list(passages.values()))
    return dict(zip(passages, map(float, found), strict=True))


@pytest.mark.parametrize(
    "talk",
    ["hello", "Hi there!", "thanks!", "thank you very much", "how are you today?", "Guten Morgen!", "who are you?", ""],
)
def test_small_talk_asks_nothing(talk, keywords):
    assert read_question(talk, keywords).forms == ()


def test_a_greeting_scores_nothing(keywords):
    assert set(scores_of("hello", keywords, cosine=1.0).values()) == {0.0}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When is the dentist appointment?", "dentist appointment"),
        ("Was kostet der Ausflug ins Planetarium?", "kostet ausflug planetarium"),
        ("¿A qué hora sale el autobús para el zoológico?", "sale autobus zoologico"),
        ("repair of the van", "repair van"),
        ("van repair", "van repair"),
        ("Who meets the mayor of Los Angeles?", "meets mayor los angeles"),
        ("bin collection on the 7th", "bin collection 7"),
    ],
)
def test_content_terms_leave_out_the_words_of_the_question_s_language(question, expected):
    assert content_terms(question) == terms(expected)


def test_relative_years_are_resolved():
    assert content_terms("what did the zoo trip cost last year", date(2026, 1, 5))[-1] == "2025"
    assert content_terms("Wann war das Fest letztes Jahr?", date(2026, 1, 5))[-1] == "2025"
    assert content_terms("book fair this year", date(2026, 1, 5)) == [*terms("book fair"), "2026"]
    assert content_terms("the zoo trip last year") == terms("zoo trip")


def test_a_misspelt_word_stands_for_the_known_one(keywords):
    asked = read_question("cardamon buns", keywords)
    assert asked.forms[0] == {*terms("cardamon"), *terms("cardamom")}
    assert scores_of("cardamon buns", keywords)["buns"] == pytest.approx(scores_of("cardamom buns", keywords)["buns"])


def test_rarer_terms_weigh_more(keywords):
    keywords.add([Entry("more", "more", "zoo", "", "", "zoo")])
    asked = read_question("zoo soccer unheard", keywords)
    keywords.remove(["more"])
    assert asked.weights[0] < asked.weights[1] < asked.weights[2]


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("How much did we pay for the zoo?", {"_money"}),
        ("What does the trip cost?", {"_money"}),
        ("What is the vet's phone number?", {"_phone"}),
        ("What is the e-mail address of the coach?", {"_email"}),
        ("What is the address of the rink?", {"_address"}),
        ("When is practice?", {"_time"}),
        ("Who is the coach?", set()),
    ],
)
def test_the_kind_of_fact_that_is_asked_for(question, facts, keywords):
    assert read_question(question, keywords).facts == facts


@given(st.text(max_size=500))
def test_any_text_can_be_asked(question):
    class Nothing:
        def count(self) -> int:
            return 0

        def frequencies(self, words):
            return dict.fromkeys(words, 0)

        def spellings(self, _word):
            return []

    asked = read_question(question, Nothing(), date(2025, 1, 1))
    assert len(asked.forms) == len(asked.weights)
    assert np.isfinite(asked.weights).all()
    assert set(asked.words) >= asked.years


def test_the_right_mail_scores_highest(keywords):
    for question, right in [
        ("What do we pay for the zoo trip?", "zoo"),
        ("When is soccer practice?", "soccer"),
        ("How does Grandma make her cardamom buns?", "buns"),
    ]:
        found = scores_of(question, keywords)
        assert max(found, key=found.__getitem__) == right, question


def test_a_year_that_the_mail_is_not_from_counts_against_it(keywords):
    found = scores_of("soccer practice in 2023", keywords)["soccer"]
    assert found < scores_of("soccer practice in 2025", keywords)["soccer"]


def test_a_mail_without_the_fact_that_is_asked_for_scores_lower(keywords):
    asked = read_question("what do the buns cost", keywords)
    evidence = features(asked, [0.4, 0.4], [passage("cardamom buns"), Passage("", "", "", " cardamom bun _money ")])
    assert list(evidence[:, FEATURES.index("fact_missing")]) == [1.0, 0.0]


ASKED = Question(
    forms=tuple(frozenset({word}) for word in ("zoo", "slip", "2025")),
    weights=np.array([1.0, 2.0, 0.5]),
    years=frozenset({"2025"}),
    facts=frozenset({"_money"}),
)
HELD = st.lists(st.sampled_from(["zoo", "slip", "2025", "_money", "other"]), max_size=5).map(
    lambda words: Passage("", "", "", f" {' '.join(words)} ")
)
COSINE = st.floats(-1, 1)


@given(st.lists(st.tuples(COSINE, st.none() | HELD), max_size=8))
def test_scores_are_probabilities_and_always_the_same(candidates):
    cosines, passages = [cosine for cosine, _ in candidates], [held for _, held in candidates]
    found = score(ASKED, cosines, passages)
    assert found.shape == (len(candidates),)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found == score(ASKED, cosines, passages)).all()


@given(HELD, COSINE, COSINE)
def test_a_higher_cosine_never_scores_lower(held, first, second):
    low, high = score(ASKED, sorted([first, second]), [held, held])
    assert low <= high


@given(HELD, COSINE, st.sampled_from(["zoo", "slip", "2025", "_money"]))
def test_a_term_more_never_scores_lower(held, cosine, term):
    more = Passage("", "", "", f"{held.terms}{term} ")
    without, with_it = score(ASKED, [cosine, cosine], [held, more])
    assert without <= with_it


@given(st.lists(st.tuples(COSINE, HELD), min_size=2, max_size=6), st.randoms())
def test_a_candidate_s_score_does_not_depend_on_the_others(candidates, random):
    cosines, passages = zip(*candidates, strict=True)
    together = score(ASKED, cosines, passages)
    one = random.randrange(len(candidates))
    assert score(ASKED, [cosines[one]], [passages[one]])[0] == pytest.approx(together[one])


def test_a_vector_of_zeros_has_no_cosine_and_scores_as_none():
    nowhere, unrelated = score(ASKED, [float("nan"), 0.0], [None, None])
    assert nowhere == unrelated


def test_a_chunk_outside_the_keyword_index_is_scored_by_its_cosine():
    low, high = score(ASKED, [0.1, 0.9], [None, None])
    assert 0 < low < high < 1


def test_features_are_as_documented():
    evidence = features(ASKED, [0.3], [Passage("", "", "", " zoo 2025 ")])
    assert evidence == pytest.approx(np.array([[0.3, 1.5 / 3.5, 0.0, 1.0, np.log(4)]]))


def test_the_logistic_function_does_not_overflow():
    assert logistic(np.array([-1e9, 0.0, 1e9])) == pytest.approx([0.0, 0.5, 1.0])


def test_thresholds_mean_the_same_under_a_model_whose_cosines_run_high():
    shifted = Calibration(
        MINILM.weights, MINILM.bias, cosine_mean=(1 + MINILM.cosine_mean) / 2, cosine_spread=MINILM.cosine_spread / 2
    )
    held = passage("zoo slip")
    cosines = np.array([0.0, 0.3, 0.6])
    same = score(ASKED, list((1 + cosines) / 2), [held] * 3, shifted)
    assert same == pytest.approx(score(ASKED, list(cosines), [held] * 3, MINILM))


def test_the_default_is_chosen_by_the_model_s_name():
    assert default_calibration("all-minilm:l6-v2") is MINILM
    assert default_calibration("sentence-transformers/all-MiniLM-L6-v2") is MINILM
    assert default_calibration("nomic-embed-text") is UNKNOWN_MODEL


def test_matching_words_are_shown_as_they_stand():
    assert matching_words("When is the zoo trip?", "The Zoo, and two trips: zoo.") == ["Zoo", "trips", "zoo"]
    assert matching_words("hello", "hello there") == []


def test_a_question_for_days_alone_is_not_answered_by_their_words_in_mail_of_another_month(keywords):
    window = Window(date(2026, 1, 10), date(2026, 1, 11))
    asked = read_question("what's on this weekend?", keywords, date(2026, 1, 9), window)
    near = Passage("", "", "", f" {' '.join(terms(date_words(date(2026, 1, 8))))} bake sale this weekend ")
    naming = Passage(
        "", "", "", f" {' '.join(terms(date_words(date(2025, 12, 1))))} {' '.join(terms('camp on January 10, 2026'))} "
    )
    far = Passage("", "", "", f" {' '.join(terms(date_words(date(2025, 6, 1))))} picnic this weekend ")
    first, second, last = score(asked, [0.4, 0.4, 0.4], [near, naming, far])
    assert min(first, second) > 3 * last

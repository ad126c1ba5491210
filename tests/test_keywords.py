from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brain_pipeline.errors import StoreError
from brain_pipeline.index.keywords import Entry, KeywordIndex
from brain_pipeline.index.sqlite import Database
from brain_pipeline.index.terms import date_words, facts, fold, terms

WORDS = [
    "soccer",
    "dentist",
    "5",
    "3:45",
    "zoo",
    "größe",
    "24bom",
    "o'clock",
    "歯医者",
    "NEAR",
    "OR",
    "*",
    '"',
    "(",
    "🎂",
]
PHRASES = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def entry(id_: str, text: str, subject: str = "", sender: str = "", dates: str = "", **more: str) -> Entry:
    return Entry(id=id_, email=f"mail-{id_}", subject=subject, sender=sender, dates=dates, text=text, **more)


@pytest.fixture
def index(tmp_path):
    with KeywordIndex(tmp_path / "keywords.sqlite3") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with KeywordIndex(tmp_path_factory.mktemp("keywords") / "keywords.sqlite3") as opened:
        yield opened


def test_terms_fold_and_stem():
    assert terms("Die Übungen der JÜRGENS") == terms("die ubungen der jurgens")
    assert terms("cancelled") == terms("cancels")
    assert terms("$1,180 by 3:45 on 10/22, Wren's") == ["1180", "by", "3:45", "on", "10/22", "wren"]


def test_one_day_is_one_term_however_it_is_written():
    assert terms("Sept. 7th") == terms("September 07") == terms("sep 7")
    assert terms("5pm") == terms("5 pm")
    assert terms("Fri") == terms("Friday")


def test_text_without_spaces_counts_by_pairs_of_characters():
    assert set(terms("歯医者")) < set(terms("明日歯医者に行く"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("It costs $5.", "_money"),
        ("Das macht 12,50 zusammen", "_money"),
        ("write to a.b@school.example", "_email"),
        ("Call 555-0132 or ext. 12", "_phone"),
        ("at 5 pm", "_time"),
        ("next Wednesday", "_time"),
        ("at 12 Alder Creek Road", "_address"),
    ],
)
def test_facts_are_recognised(text, kind):
    assert kind in set(facts(text))


def test_plain_words_hold_no_facts():
    assert set(facts("Please bring boots and a smile")) == set()


@given(st.text(max_size=300))
def test_no_text_contains_the_name_of_a_fact(text):
    assert not any(term.startswith("_") for term in terms(f"{text} _money _ _time"))


@given(st.text(max_size=300))
def test_terms_are_single_words_of_bounded_length(text):
    for term in terms(text):
        assert term
        assert term.split() == [term]


@given(st.text(max_size=100))
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


def test_date_words_answer_to_every_way_of_asking():
    assert {"2026-01-09", "Friday", "9", "January", "2026", "1/9"} == set(date_words(date(2026, 1, 9)).split())
    assert date_words(None) == ""


def test_search_finds_a_term_in_subject_sender_or_text(index):
    index.add([entry("a", "bring boots"), entry("b", "x", subject="Boots"), entry("c", "x", sender="Boots Ltd")])
    assert set(index.search(terms("boots"), 10)) == {"a", "b", "c"}


def test_search_ranks_the_rarer_term_higher(index):
    index.add([entry(f"zoo{i}", "the zoo again") for i in range(20)])
    index.add([entry("slip", "the permission slip")])
    assert list(index.search(terms("zoo permission"), 1)) == ["slip"]


def test_search_bounds_what_it_ranks_and_still_finds_the_rare(index):
    index.add([entry(str(i), "meeting notes") for i in range(2500)])
    index.add([entry("rare", "meeting about quokkas")])
    assert list(index.search(terms("meeting quokkas"), 5)) == ["rare"]
    assert len(index.search(terms("meeting"), 5)) == 5


def test_an_added_row_replaces_the_one_with_its_id(index):
    index.add([entry("a", "old swimming")])
    index.add([entry("a", "new skating")])
    assert index.count() == 1
    assert list(index.search(terms("swimming"), 10)) == []
    assert list(index.search(terms("skating"), 10)) == ["a"]


def test_of_rows_with_one_id_the_last_counts(index):
    index.add([entry("a", "first"), entry("a", "last")])
    assert list(index.search(terms("last"), 10)) == ["a"]
    assert list(index.search(terms("first"), 10)) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    added=st.lists(st.tuples(st.sampled_from("abcdefgh"), PHRASES, PHRASES), max_size=12),
    removed=st.lists(st.sampled_from("abcdefgh"), max_size=4),
    asked=PHRASES,
)
def test_it_equals_a_model_of_sets(shared, added, removed, asked):
    shared.rebuild([])
    shared.add(entry(id_, text, subject) for id_, subject, text in added)
    shared.remove(removed)
    kept = {id_: set(terms(f"{subject} {text}")) for id_, subject, text in added if id_ not in removed}

    wanted = terms(asked)
    assert shared.count() == len(kept)
    assert set(shared.search(wanted, 100)) == {id_ for id_, held in kept.items() if held & set(wanted)}
    assert shared.frequencies(wanted) == {term: sum(term in held for held in kept.values()) for term in wanted}
    passages = shared.passages([*kept, "missing"])
    assert {id_: {term for term in wanted if p.holds(term)} for id_, p in passages.items()} == {
        id_: held & set(wanted) for id_, held in kept.items()
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(st.text(max_size=2000))
def test_no_question_is_a_query_in_the_database_s_own_language(shared, question):
    words = terms(question)
    assert shared.search(words, 3) is not None
    assert shared.frequencies(words).keys() == set(words)
    assert all(isinstance(term, str) for word in words[:3] for term in shared.spellings(word))


@pytest.mark.parametrize(
    "question", ['" OR 1', "zoo*", "head:zoo", "NEAR(zoo 5)", "'; DROP TABLE passages; --", "🎂", ""]
)
def test_operators_are_plain_words(index, question):
    index.add([entry("a", "zoo")])
    assert set(index.search(terms(question), 5)) <= {"a"}
    assert index.count() == 1


def test_a_very_long_question_is_searched_for(index):
    words = [f"word{i}" for i in range(1000)]
    index.add([entry("a", " ".join(words))])
    assert list(index.search([*words, *(f"unknown{i}" for i in range(3000))], 5)) == ["a"]


def test_an_unknown_word_is_taken_for_a_misspelling(index):
    index.add([entry("a", "the library opens"), entry("b", "planetarium")])
    assert index.spellings(*terms("libary")) == terms("library")
    assert index.spellings(*terms("planatarium")) == terms("planetarium")
    assert index.spellings("zyzzyva") == []
    assert index.spellings("1234567") == []


def test_one_email_and_one_kind_can_be_told_apart(index):
    index.add([entry("a", "x"), entry("b", "y", kind="newsletter")])
    assert index.ids(email="mail-a") == {"a"}
    assert index.ids(kind="newsletter") == {"b"}
    assert index.emails() == 2


def test_a_rebuild_replaces_everything_and_keeps_notes(index):
    index.add([entry("a", "old")])
    index.note("last_ingest", "yesterday")
    index.rebuild([entry("b", "new")], stamp="version 2")
    assert index.ids() == {"b"}
    assert list(index.search(terms("old"), 5)) == []
    assert index.stamp == "version 2"
    assert index.noted("last_ingest") == "yesterday"


def test_a_rebuild_that_fails_leaves_the_old_index(index):
    def failing():
        yield entry("b", "new")
        raise RuntimeError("the collection has gone")

    index.add([entry("a", "old")])
    with pytest.raises(RuntimeError):
        index.rebuild(failing(), stamp="version 2")
    assert index.ids() == {"a"}
    assert list(index.search(terms("old"), 5)) == ["a"]
    assert index.stamp == ""


def test_readers_see_the_old_index_while_it_is_rebuilt(index):
    index.add([entry("a", "old")])
    seen = []

    def watched():
        reader = threading.Thread(target=lambda: seen.extend(index.search(terms("old"), 5)))
        reader.start()
        reader.join(timeout=30)
        yield entry("b", "new")

    index.rebuild(watched())
    assert seen == ["a"]
    assert list(index.search(terms("new"), 5)) == ["b"]


def test_many_threads_read_while_one_writes(index):
    index.add([entry("a", "zoo")])

    def always_found() -> bool:
        return all("a" in index.search(["zoo"], 100) and index.passages(["a"])["a"].holds("zoo") for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(always_found) for _ in range(4)]
        for i in range(50):
            index.add([entry(f"b{i}", "zoo")])
        assert all(reader.result(timeout=60) for reader in readers)
    assert index.count() == 51


def test_what_was_written_is_there_after_opening_again(tmp_path):
    path = tmp_path / "new folder" / "keywords.sqlite3"
    with KeywordIndex(path) as index:
        index.add([entry("a", "zoo")])
    with KeywordIndex(path) as index:
        assert list(index.search(["zoo"], 5)) == ["a"]


def test_a_damaged_file_is_a_store_error(tmp_path):
    path = tmp_path / "keywords.sqlite3"
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreError, match="delete it"):
        KeywordIndex(path)
    Database.delete(path)
    with KeywordIndex(path) as made_anew:
        assert made_anew.count() == 0


def test_an_index_of_another_format_is_a_store_error(tmp_path):
    path = tmp_path / "keywords.sqlite3"
    with KeywordIndex(path) as index:
        index.note("format", "0")
    with pytest.raises(StoreError, match="format"):
        KeywordIndex(path)


LOOKUPS = {
    "copies": lambda index: index.copies("f"),
    "ids of an email": lambda index: index.ids(email="mail-a"),
    "frequencies": lambda index: index.frequencies(["zoo"]),
    "spellings": lambda index: index.spellings("zooo"),
    "passages": lambda index: index.passages(["a"]),
    "search": lambda index: index.search(["zoo"], 5),
}


@pytest.mark.parametrize("lookup", LOOKUPS.values(), ids=LOOKUPS.keys())
def test_looking_up_reads_no_whole_table(index, lookup, monkeypatch):
    """Ingestion and questions look up again and again; reading a table each time would make them quadratic."""
    index.add([entry("a", "the zoo", fingerprint="f")])
    index.count()  # the one statement that reads all, once until the next change
    asked = []
    read = index._database.read
    monkeypatch.setattr(index._database, "read", lambda *call: asked.append(call) or read(*call))
    lookup(index)
    assert asked
    for statement, *values in asked:
        for *_, step in read(f"EXPLAIN QUERY PLAN {statement}", *values):
            assert not step.startswith("SCAN passages"), statement
            assert not step.startswith("SCAN vocabulary"), statement


def test_chunks_of_one_kind_are_looked_up_by_their_ids(shared):
    asked = []
    shared._database._reader.set_trace_callback(asked.append)
    shared.passages(map(str, range(60)), "email")
    shared._database._reader.set_trace_callback(None)
    [statement] = asked
    plan = shared._database.read(f"EXPLAIN QUERY PLAN {statement}")
    assert [row[-1] for row in plan] == ["SEARCH passages USING INDEX sqlite_autoindex_passages_1 (id=?)"]

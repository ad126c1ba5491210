from __future__ import annotations

from datetime import date

import pytest

from brain_pipeline.errors import StoreError
from brain_pipeline.index.keywords import Entry, KeywordIndex
from brain_pipeline.index.terms import date_words, terms


def entry(id_: str, text: str, subject: str = "", sender: str = "") -> Entry:
    return Entry(id=id_, email=f"mail-{id_}", subject=subject, sender=sender, dates="", text=text)


@pytest.fixture
def index(tmp_path):
    with KeywordIndex(tmp_path / "keywords.sqlite3") as opened:
        yield opened


def test_terms_fold_and_stem():
    assert terms("Die Übungen der JÜRGENS") == terms("die ubungen der jurgens")
    assert terms("cancelled") == terms("cancels")
    assert terms("$1,180 by 3:45 on 10/22, Wren's") == ["1180", "by", "3:45", "on", "10/22", "wren"]


def test_date_words_answer_to_every_way_of_asking():
    assert {"2026-01-09", "Friday", "9", "January", "2026", "1/9"} == set(date_words(date(2026, 1, 9)).split())


def test_search_finds_a_term_in_subject_sender_or_text(index):
    index.add([entry("a", "bring boots"), entry("b", "x", subject="Boots"), entry("c", "x", sender="Boots Ltd")])
    assert set(index.search(terms("boots"), 10)) == {"a", "b", "c"}


def test_an_added_row_replaces_the_one_with_its_id(index):
    index.add([entry("a", "old swimming")])
    index.add([entry("a", "new skating")])
    assert index.count() == 1
    assert index.search(terms("swimming"), 10) == []
    assert index.search(terms("skating"), 10) == ["a"]


def test_a_damaged_file_is_a_store_error(tmp_path):
    path = tmp_path / "keywords.sqlite3"
    path.write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreError, match="delete it"):
        KeywordIndex(path)
    KeywordIndex.delete(path)
    with KeywordIndex(path) as made_anew:
        assert made_anew.count() == 0

"""Any order of ingesting, changing, forgetting and restarting leaves what a dictionary would hold."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from household import mail
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from brain_pipeline.brain import Brain
from brain_pipeline.settings import Settings
from brain_pipeline.testing import HashedTokenEmbedder

NUMBERS = st.integers(0, 5)
LENGTHS = st.sampled_from([0, 1, 30, 120])


def message(number: int, sentences: int, edition: int):
    words = f"Mail {number} says edition {edition} of the plan in the park. "
    return mail(f"Plan {number}", words * sentences, message_id=f"<{number}@plan.example>")


class Library(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.settings = Settings.load(chroma_db_path=self.folder / "chroma", timezone="UTC", embed_batch_size=4)
        self.brain = self.opened()
        self.held = {}

    def opened(self):
        return Brain(self.settings, embedder=HashedTokenEmbedder(dimension=32, embed_batch_size=4))

    @rule(wanted=st.lists(st.tuples(NUMBERS, LENGTHS, st.integers(0, 2)), max_size=8))
    def ingest(self, wanted):
        mails = [message(*each) for each in wanted]
        report = self.brain.ingest_mails([("x", each) for each in mails])
        first = {each.message_id: each for each in reversed(mails)}
        new = sum(id_ not in self.held for id_ in first)
        updated = sum(id_ in self.held and self.held[id_] != each for id_, each in first.items())
        assert (report.new, report.updated) == (new, updated)
        assert report.total == len(mails)
        self.held |= first

    @rule()
    def ingest_all_again(self):
        report = self.brain.ingest_mails([("x", each) for each in self.held.values()])
        assert (report.new, report.updated) == (0, 0)

    @rule(number=NUMBERS)
    def forget(self, number):
        id_ = f"<{number}@plan.example>"
        assert bool(self.brain.forget(id_)) == (id_ in self.held)
        self.held.pop(id_, None)

    @rule()
    def restart(self):
        self.brain.close()
        self.brain = self.opened()

    @invariant()
    def the_collection_holds_exactly_these(self):
        stored = {}
        for row in self.brain.catalog.store.rows():
            stored.setdefault(row.metadata["message_id"], {})[row.metadata["chunk_index"]] = row
        assert stored.keys() == self.held.keys()
        for id_, rows in stored.items():
            assert sorted(rows) == list(range(rows[0].metadata["chunk_count"]))
            assert " ".join(rows[0].text.split()) == " ".join(self.held[id_].text.split())[: len(rows[0].text)].strip()
        keywords = self.brain.catalog.keywords()
        if keywords:
            assert keywords.ids() == self.brain.catalog.store.ids()
            assert keywords.emails() == len(self.held)

    def teardown(self):
        self.brain.close()
        shutil.rmtree(self.folder)


Library.TestCase.settings = hypothesis_settings(max_examples=15, stateful_step_count=12, deadline=None)
TestLibrary = Library.TestCase

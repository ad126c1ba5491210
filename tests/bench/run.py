"""How large a run is, and what it keeps for the next one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import corpus
from bench.processes import Service, brain, chroma_server, peer

WARM_UP = 20  # questions that are not counted
PEERS = ("floor", "stock", "citation")


@dataclass(frozen=True)
class Run:
    """Sizes in chunks; ``rounds`` questions of each contender; ``seconds`` of load in each of ``turns``."""

    cache: Path
    small: int = 10_000
    large: int = 100_000
    largest: int = 200_000
    rounds: int = 200
    turns: int = 5
    seconds: float = 4.0
    mails: int = 2_000
    questions: int | None = None

    @classmethod
    def quick(cls, cache: Path) -> Run:
        """To see that everything works; the figures mean nothing."""
        return cls(
            cache, small=1_000, large=1_000, largest=2_000, rounds=5, turns=1, seconds=0.5, mails=60, questions=9
        )

    @property
    def sizes(self) -> list[int]:
        return sorted({self.small, self.large, self.largest})

    def database(self, size: int) -> str:
        return str(corpus.collection_of(self.cache, size))

    @property
    def surroundings(self) -> dict[str, str]:
        """Where a brain keeps its keyword index of a Chroma server."""
        return {"XDG_CACHE_HOME": str(self.cache / "home")}

    def questions_of(self, size: int, seed: int) -> list[str]:
        """Other questions for every ``seed``, so that nothing can be remembered from one row to the next."""
        return corpus.questions(WARM_UP + self.rounds, size, seed)

    @contextmanager
    def contenders(
        self, size: int, models: Service, *, server: bool = False, peers: tuple[str, ...] = PEERS
    ) -> Iterator[dict[str, Service]]:
        """The brain and its peers over one collection, embedded in each or on a Chroma server."""
        with ExitStack() as running:
            where = self.database(size)
            if server:
                where = running.enter_context(chroma_server(where)).url
            starting = {"brain": brain(where, models, **self.surroundings)}
            starting |= {name: peer(name, where, models) for name in peers}
            with ThreadPoolExecutor() as at_once:
                started = at_once.map(running.enter_context, starting.values())
            yield dict(zip(starting, started, strict=True))

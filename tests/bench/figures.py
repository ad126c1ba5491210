"""What is measured: samples with their spread, and what they are compared with."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Spread:
    """Samples of one figure: how many, the quartiles, and the ends."""

    n: int
    min: float
    q1: float
    median: float
    q3: float
    max: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Self:
        q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
        return cls(len(samples), min(samples), q1, median, q3, max(samples))


@dataclass(frozen=True, slots=True)
class Goal:
    """What a ratio should be; ``at_least`` or else at most ``limit``."""

    limit: float
    at_least: bool = False

    def met(self, ratio: float) -> bool:
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


FASTER = Goal(1.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The brain's median over that of something else."""

    against: str
    spread: Spread
    ratio: float
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of the brain, what it is compared with, and what else was found or set."""

    what: str
    unit: str
    brain: Spread
    comparisons: tuple[Comparison, ...]
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, what: str, unit: str, samples: Mapping[str, Sequence[float]], goals: Mapping[str, Goal], **about: Any
    ) -> Self:
        """``samples`` by contender, the brain's under ``brain``; ``goals`` for the ratios that have one."""
        spreads = {name: Spread.of(list(values)) for name, values in samples.items()}
        brain = spreads.pop("brain")
        compared = (
            Comparison(name, spread, brain.median / spread.median, goals.get(name)) for name, spread in spreads.items()
        )
        return cls(what, unit, brain, tuple(compared), about)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        def comparison(each: Mapping[str, Any]) -> Comparison:
            goal = Goal(**each["goal"]) if each["goal"] else None
            return Comparison(each["against"], Spread(**each["spread"]), each["ratio"], goal)

        compared = tuple(map(comparison, kept["comparisons"]))
        return cls(kept["what"], kept["unit"], Spread(**kept["brain"]), compared, kept["about"])


def interleaved(
    contenders: Mapping[str, Callable[[Any], float]], inputs: Sequence[Any], *, warm_up: int = 0
) -> dict[str, list[float]]:
    """Every contender is given every input, one after another in an order drawn anew for each; samples by contender.

    A machine that slows down for a while thus slows all of them. The first ``warm_up`` inputs are not counted.
    """
    chance = random.Random(1)
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for number, each in enumerate(inputs):
        for name in chance.sample(list(contenders), len(contenders)):
            took = contenders[name](each)
            if number >= warm_up:
                samples[name].append(took)
    return samples

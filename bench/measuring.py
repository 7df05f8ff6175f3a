"""Takes samples in alternation, and computes the rows of the table from them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


class BenchError(Exception):
    """A measurement could not be taken; the others go on."""


@dataclass(kw_only=True, slots=True)
class Sample:
    """The values measured for one thing, one each round."""

    name: str
    unit: str = "ms"
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of its values."""
        return statistics.median(self.values)

    def percentile(self, percent: float) -> float:
        """The smallest value such that `percent` of all are not above it (nearest rank)."""
        rank = -(-len(self.values) * percent // 100)
        return sorted(self.values)[max(0, int(rank) - 1)]

    def __str__(self) -> str:
        return f"{number(self.median)} {self.unit}  {self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the table: a figure, what it is compared with in the same run, and the result of the two."""

    figure: int
    what: str
    subject: Sample
    neighbour: Sample | None
    result: float
    #: What `result` is: `ratio`, `median ms`, `p99 ms`.
    kind: str
    goal: float | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met; None if there is none."""
        return None if self.goal is None else self.result <= self.goal

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON, with every single value."""
        samples = {"subject": self.subject, "neighbour": self.neighbour}
        return {
            "figure": self.figure, "what": self.what, "kind": self.kind, "result": self.result, "goal": self.goal,
            "met": self.is_met,
            **{
                role: {"name": sample.name, "unit": sample.unit, "median": sample.median, "values": sample.values}
                for role, sample in samples.items() if sample is not None
            },
        }  # fmt: skip


@dataclass(slots=True)
class Found:
    """The results of a figure: its rows, the remarks below the table, and what was not found."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def __iadd__(self, other: Found) -> Found:
        self.rows += other.rows
        self.notes += other.notes
        self.missing += other.missing
        return self


@dataclass(frozen=True, kw_only=True, slots=True)
class Rounds:
    """How often each thing is measured."""

    usual: int = 15
    waits: int = 100
    batches: int = 5


def ratio(figure: int, what: str, subject: Sample, neighbour: Sample, goal: float | None = None) -> Row:
    """Return the row of a figure that is compared with its neighbour round by round.

    A processor changes its speed for seconds at a time, which affects both values of a round alike: for the same
    values, the median of the rounds' ratios scatters half as much as the ratio of the medians.
    """
    result = statistics.median(own / other for own, other in zip(subject.values, neighbour.values, strict=True))
    return Row(figure=figure, what=what, subject=subject, neighbour=neighbour, result=result, kind="ratio", goal=goal)


def alternate(rounds: int, *turns: Callable[[], object], warm_up: int = 1) -> None:
    """Run the turns in alternation, so that noise affects all alike; drop the values of the first, warming-up round.

    Each turn measures once and appends to its samples; `Turn` does both.
    """
    for number_of_round in range(-warm_up, rounds):
        for turn in turns:
            turn()
            if number_of_round < 0 and isinstance(turn, Turn):
                turn.drop()


class Turn:
    """One measurement each round: `measure` returns a value for each of `samples`."""

    def __init__(self, measure: Callable[[], Sequence[float]], *samples: Sample) -> None:
        self._measure = measure
        self._samples = samples

    def __call__(self) -> None:
        for sample, value in zip(self._samples, self._measure(), strict=True):
            sample.values.append(value)

    def drop(self) -> None:
        """Drop the values measured so far."""
        for sample in self._samples:
            sample.values.clear()


def number(value: float) -> str:
    """Return a number with about three significant digits.

    >>> number(0.12345), number(12.345), number(1234.5)
    ('0.12', '12.3', '1,234')
    """
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"

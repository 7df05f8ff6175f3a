"""What is measured of one function, whatever the language."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_low
from typing import Any

LONG_LINES = 50
DEEP_LEVELS = 4
"From these on a function is counted as heavy."


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    name: str
    line: int
    lines: int
    nesting: int
    "Levels of control flow (branches, loops, `with`, `try`); an inner function begins anew."
    branches: int
    "Points where the control flow divides."
    method: str
    "How it was found: `ast`, `braces` or `indentation` (the last two are estimates)."


@dataclass(frozen=True, kw_only=True, slots=True)
class Located:
    path: str
    "Relative to the tree, as it may be shown."
    area: str
    language: str
    measure: Measure

    @property
    def is_heavy(self) -> bool:
        return self.measure.lines >= LONG_LINES or self.measure.nesting >= DEEP_LEVELS

    def as_json(self) -> dict[str, Any]:
        one = self.measure
        return {
            "path": self.path,
            "line": one.line,
            "name": one.name,
            "language": self.language,
            "lines": one.lines,
            "nesting": one.nesting,
            "branches": one.branches,
            "method": one.method,
        }


def longest(functions: list[Located]) -> list[Located]:
    return sorted(functions, key=lambda one: (-one.measure.lines, one.path, one.measure.line))


def deepest(functions: list[Located]) -> list[Located]:
    return sorted(functions, key=lambda one: (-one.measure.nesting, -one.measure.lines, one.path, one.measure.line))


def most_branching(functions: list[Located]) -> list[Located]:
    return sorted(functions, key=lambda one: (-one.measure.branches, one.path, one.measure.line))


def profile(functions: list[Located]) -> dict[str, Any]:
    """The sizes of many functions in a few numbers."""
    lengths = sorted(one.measure.lines for one in functions)
    return {
        "functions": len(functions),
        "heavy": sum(one.is_heavy for one in functions),
        "medianLines": median_low(lengths) if lengths else 0,
        "p90Lines": lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0,
        "longestLines": lengths[-1] if lengths else 0,
        "deepestNesting": max((one.measure.nesting for one in functions), default=0),
    }

"""The table behaviour x program that a run of these tests comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.agents.facts import VERSIONS

_WORDS = {"passed": "yes", "failed": "FAILED", "error": "FAILED", "skipped": "not tried", "xfailed": "cannot"}


@dataclass(slots=True)
class Matrix:
    """What each program did, by behaviour; both in the order of the tests."""

    rows: dict[str, dict[str, str]] = field(default_factory=dict)
    #: (program, why something cannot be done or was not tried) -> what.
    reasons: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, stats: Mapping[str, Sequence[Any]]) -> Self:
        """Make it from pytest's reports."""
        told = [
            (dict(getattr(report, "user_properties", ())), word, report)
            for outcome, word in _WORDS.items()
            for report in stats.get(outcome, ())
        ]
        cells = [one for one in told if "behaviour" in one[0]]
        matrix = cls()
        for cell, word, report in sorted(cells, key=lambda one: int(one[0]["place"])):
            matrix._add(cell, word, report)
        return matrix

    def _add(self, cell: Mapping[str, Any], word: str, report: Any) -> None:
        row = self.rows.setdefault(cell["behaviour"], {})
        if row.get(cell["program"]) != "FAILED":  # a test that passed may fail in what it leaves behind
            row[cell["program"]] = word
        if word in {"cannot", "not tried"}:
            self.reasons.setdefault((cell["program"], _reason(report)), []).append(cell["behaviour"])

    def text(self) -> str:
        """Return it as a table of Markdown."""
        head = ["behaviour", *(f"{program} {version}" for program, version in VERSIONS.items())]
        lines = [head, ["---"] * len(head)]
        lines += [[row, *(cells.get(program, "-") for program in VERSIONS)] for row, cells in self.rows.items()]
        table = ["| " + " | ".join(cells) + " |" for cells in lines]
        reasons = [f"- {program}: {why}. {'; '.join(what)}" for (program, why), what in self.reasons.items()]
        return "\n".join([*table, *([""] if reasons else []), *reasons])


def _reason(report: Any) -> str:
    told = getattr(report, "wasxfail", "") or (report.longrepr[2] if isinstance(report.longrepr, tuple) else "")
    return str(told).removeprefix("Skipped: ").removeprefix("reason: ").removeprefix("[NOTRUN] ")

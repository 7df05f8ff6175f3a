"""Survey: joins what the other workers found into one report.md.

It starts when they have ended, however they ended; it says which part failed, was cancelled or left nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from survey import TOP, Worker, WorkerError, argument_parser, code, plural, run, table


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What one worker left behind."""

    name: str
    ended: str = "unknown"
    "How it ended, as agentctl says; `unknown` outside a task."
    findings: dict[str, Any] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return self.findings.get("complete") is True and self.ended in {"completed", "unknown"}

    def number(self, area: str, key: str | None = None) -> int:
        """Return what it counted for a folder."""
        value = self.findings.get("areas", {}).get(area, 0)
        return int(value.get(key, 0) if isinstance(value, dict) else value)


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    if worker.folder is None:
        raise WorkerError("AGENTCTL_AGENT_DIR is not set: it names the folder beside those of the other workers")
    worker.progress(10, "reading the findings of the others")
    rows = (worker.agentctl("list") or []) if worker.in_task else []
    endings = {row["agentInstance"]: row for row in rows}
    parts = [part_of(worker.folder.parent, name, endings.get(name, {})) for name in arguments.parts]
    report = worker.write("report.md", "\n".join(report_of(arguments.path, parts)) + "\n")
    broken = [f"{part.name} {part.ended}" for part in parts if not part.is_whole]
    summary = f"report.md joins {len(parts) - len(broken)} of {plural(len(parts), 'part')}"
    summary += f" (not whole: {', '.join(broken)})" if broken else ""
    worker.finish({"summary": summary, "markdown": [str(report)]}, report)


def part_of(agents: Path, name: str, row: dict[str, Any]) -> Part:
    """Read the findings of one worker; its row of the list says how it ended."""
    ended = row.get("status", "unknown") + (f" ({row['reason']})" if row.get("reason") else "")
    try:
        findings = json.loads((agents / name / "findings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Part(name=name, ended=f"{ended}, without findings that can be read")
    return Part(name=name, ended=ended, findings=findings)


def report_of(path: str, parts: list[Part]) -> list[str]:
    rows = [(part.name, part.ended, code(part.findings.get("summary", "-"), 300)) for part in parts]
    lines = [f"# Survey of {code(path, 400)}", ""]
    lines += [f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {plural(len(parts), 'part')}.", ""]
    lines += table(("part", "ended", "in short"), rows)
    broken = ", ".join(part.name for part in parts if not part.is_whole)
    lines += ["", f"**This report is not whole**: {broken}."] if broken else []
    lines += ["", "## Where to look first", "", *crossed({part.name: part for part in parts})]
    for part in parts:
        lines += ["", f"## {part.name.capitalize()}", ""]
        if not part.is_whole:
            lines += [f"Not whole: {part.ended}. What it had found until then:", ""]
        lines += part.findings.get("markdown", ["Nothing."])
    return lines


def crossed(parts: dict[str, Part]) -> list[str]:
    """Return the folders of the tree with what each part knows of them, the heaviest first."""
    size, todos, functions = (parts.get(name, Part(name=name)) for name in ("size", "todos", "functions"))
    rows = []
    for name in {area for part in parts.values() for area in part.findings.get("areas", {})}:
        lines, left = size.number(name), todos.number(name)
        heavy, longest = functions.number(name, "heavy"), functions.number(name, "longest")
        density = f"{1000 * (heavy + left) / lines:.1f}" if lines else "-"
        rows.append((code(name), lines, left, heavy, longest, density))
    rows.sort(key=lambda row: (-row[2] - row[3], -row[1], row[0]))
    headers = ("folder", "lines", "left to do", "heavy functions", "longest function", "both per 1,000 lines")
    more = ["", f"{plural(len(rows) - TOP, 'more folder')}."] if len(rows) > TOP else []
    return [*table(headers, rows[:TOP]), *more]


if __name__ == "__main__":
    parser = argument_parser(__doc__)
    parser.add_argument("parts", nargs="+", help="the workers to join")
    run("report", work, parser)

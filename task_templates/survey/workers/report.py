"""Survey: joins what the other workers found into one report.md.

It starts when they have ended, however they ended: a part that failed, was cancelled or left nothing
is told as such.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import markdown
from markdown import code, plural
from source_tree import shown
from worker import Worker, WorkerError, agentctl_json, argument_parser, run, write_atomically

TITLES = {
    "size": "Size and languages",
    "todos": "Left to do",
    "functions": "Functions",
    "dependencies": "Dependencies",
}
MOST_AREAS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What one worker left behind."""

    name: str
    status: str
    "As agentctl tells it; `unknown` when nobody could."
    reason: str = ""
    findings: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    "Why there are no findings."

    @property
    def is_whole(self) -> bool:
        """Only agentctl may call a part failed: run by hand, complete findings are enough."""
        return self.findings.get("complete") is True and self.status in ("completed", "unknown")

    @property
    def title(self) -> str:
        return TITLES.get(self.name, shown(self.name))

    @property
    def told(self) -> str:
        """How it ended, in words."""
        ending = f"{self.status} ({self.reason})" if self.reason else self.status
        if self.problem:
            return f"{ending}; {self.problem}"
        return ending if self.is_whole else f"{ending}; what it had found until then is below"


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    if worker.agent_dir is None:
        raise WorkerError("AGENTCTL_AGENT_DIR is not set: it names the folder beside those of the other workers")
    worker.progress(10, "reading the findings of the others")
    endings = endings_of(worker)
    parts = [part_of(worker.agent_dir.parent, name, endings.get(name, {})) for name in arguments.parts]
    report = worker.agent_dir / "report.md"
    write_atomically(report, "\n".join(report_of(arguments.path, parts)) + "\n")
    whole = sum(part.is_whole for part in parts)
    summary = f"report.md joins {whole} of {plural(len(parts), 'part')}"
    missing = [f"{part.name} {part.status}" for part in parts if not part.is_whole]
    worker.save({"summary": summary, "report": str(report), "notWhole": missing}, complete=True)
    print(f"{summary}" + (f"; not whole: {', '.join(missing)}" if missing else ""))
    print(report)
    worker.declare(summary + (f" (not whole: {', '.join(missing)})" if missing else ""), report)


def endings_of(worker: Worker) -> dict[str, dict[str, Any]]:
    """Status and reason of each worker of this task, as agentctl lists them."""
    rows = agentctl_json("list") if worker.in_task else None
    if not isinstance(rows, list):
        return {}
    return {str(row.get("agentInstance")): row for row in rows if isinstance(row, dict)}


def part_of(agents: Path, name: str, ending: dict[str, Any]) -> Part:
    ending = ending or _object(agents / name / "exit.json") or {}
    status, reason = str(ending.get("status") or "unknown"), str(ending.get("reason") or "")
    target = agents / name / "findings.json"
    findings = _object(target)
    if findings is None:
        problem = "its findings cannot be read" if target.exists() else "it left no findings"
        return Part(name=name, status=status, reason=reason, problem=problem)
    return Part(name=name, status=status, reason=reason, findings=findings)


def _object(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def report_of(path: str, parts: list[Part]) -> list[str]:
    known = next((part.findings["path"] for part in parts if part.findings.get("path")), path)
    lines = [f"# Survey of {code(str(known), 400)}", ""]
    lines += [f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {plural(len(parts), 'part')}.", ""]
    lines += [*overview(parts), "", *crossed(parts)]
    for part in parts:
        lines += ["", f"## {part.title}", "", *body_of(part)]
    return lines


def overview(parts: list[Part]) -> list[str]:
    """One line a part: how it ended and what it found."""
    rows = [(part.title, part.told, code(str(part.findings.get("summary", "-")), 300)) for part in parts]
    lines = markdown.table(("part", "ended", "in short"), rows)
    missing = [part.title for part in parts if not part.is_whole]
    if missing:
        lines += ["", f"**This report is not whole**: {', '.join(missing)}."]
    return lines


def body_of(part: Part) -> list[str]:
    text = part.findings.get("markdown")
    if not isinstance(text, list):
        return [f"Nothing to show: {part.told}."]
    told = [] if part.is_whole else [f"Not whole: {part.told}.", ""]
    return [*told, *(str(line) for line in text)]


def crossed(parts: list[Part]) -> list[str]:
    """The folders of the tree with what each part knows of them, the heaviest first."""
    areas = {part.name: part.findings.get("areas") for part in parts}
    sizes, todos, functions = (_areas(areas.get(name)) for name in ("size", "todos", "functions"))
    names = {*sizes, *todos, *functions}
    if not names:
        return []

    def weight(name: str) -> tuple[int, int, str]:
        return -_number(functions, name, "heavy") - _number(todos, name), -_number(sizes, name, "lines"), name

    rows = []
    for name in sorted(names, key=weight)[:MOST_AREAS]:
        lines, markers = _number(sizes, name, "lines"), _number(todos, name)
        heavy, longest = _number(functions, name, "heavy"), _number(functions, name, "longestLines")
        density = f"{1000 * (heavy + markers) / lines:.1f}" if lines else "-"
        rows.append((code(name), lines, markers, heavy, longest, density))
    headers = ("folder", "lines", "left to do", "heavy functions", "longest function", "both per 1,000 lines")
    more = [f"{plural(len(names) - MOST_AREAS, 'more folder')}."] if len(names) > MOST_AREAS else []
    return ["## Where to look first", "", *markdown.table(headers, rows), *(["", *more] if more else [])]


def _areas(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _number(areas: dict[str, Any], name: str, key: str | None = None) -> int:
    value = areas.get(name)
    if key is not None:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int) else 0


if __name__ == "__main__":
    arguments = argument_parser(__doc__)
    arguments.add_argument("parts", nargs="*", default=list(TITLES), help="the workers to join (default: all four)")
    run("report", work, arguments)

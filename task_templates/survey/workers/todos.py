"""Survey: what was left to do (TODO, FIXME, XXX, HACK in comments), the oldest first.

The age is that of the line in git; of the file, and told so, where git knows nothing of it.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import markdown
from comments import comment_lines
from git_age import Age, LineAges
from languages import PROSE, language_of
from markdown import code, plural
from source_tree import SourceFile, Tree, area, is_generated, shown, walk
from worker import Worker, argument_parser, positive, run

TEXT_LIMIT = 120
DAY_S = 86_400
KINDS = ("TODO", "FIXME", "XXX", "HACK")

# Quoted or in a list (`TODO|FIXME`, "TODO") the words are spoken of, not used.
MARKER = re.compile(r"(?<![\w/|,'\"`<-])(TODO|FIXME|XXX|HACK)(?![\w/|,'\"`>-])")
NOTE_BEGINS = re.compile(r"[\s*+>-]*(?:TODO|FIXME|XXX|HACK)\s*[:(\[]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    kind: str
    file: SourceFile
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Todo:
    marker: Marker
    age: Age

    def days(self, now: float) -> int:
        return max(0, int((now - self.age.at) / DAY_S))

    def as_json(self, now: float) -> dict[str, Any]:
        return {
            "kind": self.marker.kind,
            "path": shown(self.marker.file.relative),
            "line": self.marker.line,
            "text": shown(self.marker.text, TEXT_LIMIT),
            "since": datetime.fromtimestamp(self.age.at, UTC).strftime("%Y-%m-%d"),
            "days": self.days(now),
            "ageFrom": self.age.source,
            "atLeast": self.age.at_least,
            "author": shown(self.age.author, 60),
        }


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path, lambda found: worker.progress(0, f"listing: {plural(found, 'file')}"))
    marked: dict[str, list[Marker]] = {}
    for file in worker.each(tree.files, "reading", 0, 40):
        markers = list(markers_of(tree, file))
        if markers:
            marked[file.relative] = markers
    ages = LineAges(budget_s=arguments.git_seconds)
    todos: list[Todo] = []
    for markers in worker.each(list(marked.values()), "asking git for the age", 40, 100):
        aged = ages.of(markers[0].file, sorted({marker.line for marker in markers}))
        todos += [Todo(marker=marker, age=aged[marker.line]) for marker in markers]
    worker.finish(findings_of(tree, todos, ages, arguments.top))


def markers_of(tree: Tree, file: SourceFile) -> Iterator[Marker]:
    text = tree.text(file)
    if text is None or not any(kind in text for kind in KINDS) or is_generated(file, text):
        return
    language = language_of(file.name, text)
    comments = {} if language in PROSE else comment_lines(text, language)
    for number, line in enumerate(text.split("\n"), start=1):
        # A line that begins with it is a note wherever it stands: in prose, in a docstring.
        note = line if NOTE_BEGINS.match(line) else comments.get(number, "")
        if match := MARKER.search(note):  # one line is one thing to do, however many markers it has
            yield Marker(
                kind=match[1],
                file=file,
                line=number,
                text=note[match.start() :].strip().removesuffix("*/").strip(),
            )


def findings_of(tree: Tree, todos: list[Todo], ages: LineAges, top: int) -> dict[str, Any]:
    now = time.time()
    oldest = sorted(todos, key=lambda todo: (todo.age.at, todo.marker.file.relative, todo.marker.line))
    kinds = Counter(todo.marker.kind for todo in todos)
    findings: dict[str, Any] = {
        "path": shown(tree.root, 4096),
        "total": len(todos),
        "kinds": {kind: kinds[kind] for kind in KINDS if kinds[kind]},
        "todos": [todo.as_json(now) for todo in oldest],
        "ageFromGit": sum(todo.age.source == "git" for todo in todos),
        "ageFromDate": dict(ages.failures),
        "areas": dict(Counter(shown(area(todo.marker.file.relative)) for todo in todos).most_common()),
        **tree.remarks(),
    }
    findings["summary"] = summary_of(findings)
    findings["markdown"] = section(findings, top)
    return findings


def summary_of(findings: dict[str, Any]) -> str:
    if not findings["total"]:
        return "nothing is marked as left to do"
    counted = ", ".join(f"{number:,} {kind}" for kind, number in findings["kinds"].items())
    oldest = findings["todos"][0]
    where = f"{oldest['path']}:{oldest['line']}"
    return f"{counted}; the oldest since {oldest['since']} ({age_text(oldest)}) in {where}"


def section(findings: dict[str, Any], top: int) -> list[str]:
    rows = [
        (
            one["since"],
            age_text(one),
            one["kind"],
            code(f"{one['path']}:{one['line']}"),
            code(one["text"]),
            one["author"],
        )
        for one in findings["todos"][:top]
    ]
    lines = markdown.table(("since", "age", "kind", "where", "text", "author"), rows)
    if findings["total"] > top:
        lines += ["", f"The {top} oldest of {findings['total']:,}; all are in findings.json."]
    if findings["ageFromDate"]:
        reasons = ", ".join(f"{number:,} {why}" for why, number in findings["ageFromDate"].items())
        lines += ["", f"Age by the date of the file, as git could not tell it: {reasons}."]
    return [*(lines or ["Nothing found."]), *markdown.remarks(findings)]


def age_text(one: dict[str, Any]) -> str:
    days = one["days"]
    if days >= 2 * 365:
        text = f"{days / 365.25:.1f} years"
    elif days >= 60:
        text = f"{days // 30} months"
    else:
        text = plural(days, "day")
    return ("at least " if one["atLeast"] else "") + text + (" (file)" if one["ageFrom"] == "mtime" else "")


if __name__ == "__main__":
    arguments = argument_parser(__doc__)
    arguments.add_argument("--git-seconds", type=positive, default=120, help="how long git is asked (default: 120)")
    run("todos", work, arguments)

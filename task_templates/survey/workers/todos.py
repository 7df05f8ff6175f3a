"""Survey: what was left to do: TODO, FIXME, XXX or HACK at the beginning of a comment."""

from __future__ import annotations

import argparse
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from survey import TOP, SourceFile, Worker, argument_parser, code, run, shown, table, walk

KINDS = ("TODO", "FIXME", "XXX", "HACK")
_KIND = rf"({'|'.join(KINDS)})\b(?![\w/|,'\"`>-])"
_COMMENT = re.compile(rf"(?:^\s*[#;*]+|#\s|(?<!:)//|/\*+|--\s|<!--)[\s!]*{_KIND}")


class Todo(NamedTuple):
    kind: str
    where: str
    text: str
    area: str


def work(worker: Worker, arguments: argparse.Namespace) -> None:
    tree = walk(arguments.path)
    todos: list[Todo] = []
    for file in worker.each(tree.files, "reading"):
        text = tree.text(file) or ""
        if any(kind in text for kind in KINDS):
            todos += todos_in(file, text)
    worker.finish(findings_of(todos))


def todos_in(file: SourceFile, text: str) -> Iterator[Todo]:
    """Yield what a file marks as left to do; a word in a string or within a sentence marks nothing."""
    for number, part in comments_of(text) if file.is_python else enumerate(text.split("\n"), start=1):
        match = _COMMENT.search(part)
        if match is not None and not any(part.count(quote, 0, match.start()) % 2 for quote in "\"'`"):
            rest = part[match.start(1) :].strip().removesuffix("*/").removesuffix("-->").strip()
            yield Todo(match[1], f"{shown(file.relative)}:{number}", rest, file.area)


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of Python with their lines, as far as the text can be read as Python."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    except (tokenize.TokenError, SyntaxError):
        return


def findings_of(todos: list[Todo]) -> dict[str, Any]:
    kinds = Counter(todo.kind for todo in todos)
    counted = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kinds[kind])
    lines = table(("where", "text"), [(code(todo.where), code(todo.text, 120)) for todo in todos[:TOP]])
    more = ["", f"{len(todos) - TOP:,} more."] if len(todos) > TOP else []
    return {
        "summary": counted or "nothing is marked as left to do",
        "areas": dict(Counter(todo.area for todo in todos)),
        "markdown": [*lines, *more],
    }


if __name__ == "__main__":
    run("todos", work, argument_parser(__doc__))

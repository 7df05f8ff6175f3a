"""Checks that each command that agentctl advises is one that it has, with the options that it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.cli.lazy import VERBS, program
from tests.support import REPOSITORY

SOURCES = sorted((REPOSITORY / "agentctl").rglob("*.py"))
#: A command in a text of ours, and what follows up to the end of its part of the sentence.
COMMAND = re.compile(r"\bagentctl ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?([^;,()`|\n]*)")
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*|-[a-z])(?![\w-])")
#: Words that follow the name of the program in sentences about it, and no commands.
SENTENCES = frozenset({
    "in", "is", "version", "must", "here", "above", "speaks", "runs", "does", "says", "never", "goes", "did",
    "which", "has", "itself", "there", "anew", "folder", "removes", "cannot", "needs", "was", "and", "do"
})  # fmt: skip


def texts_in(source: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module that are not documentation, with `{}` for each value in them."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def commands() -> list[tuple[str, str, str, str]]:
    """Return the commands in all texts: where, name, the word after it, the rest."""
    found = []
    for source in SOURCES:
        for line, text in texts_in(source):
            where = f"{source.relative_to(REPOSITORY)}:{line}"
            found += [(where, match[1], match[2] or "", match[3]) for match in COMMAND.finditer(text)]
    return found


@pytest.fixture(scope="module")
def group() -> Any:
    return program()


def problem(group: Any, name: str, part: str, rest: str) -> str | None:
    """Return what is wrong with a command; None if it can be typed."""
    if name not in VERBS:
        return None if name in SENTENCES else f"there is no command {name!r}"
    command = group.get_command(None, name)
    below = getattr(command, "commands", None)
    if below and part in below:
        command = below[part]
    elif below and part and not command.invoke_without_command:
        return f"{name} has no command {part!r}"
    known = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
    before, dashes, _ = rest.partition(" -- ")
    wrong = [option for option in OPTION.findall(before if dashes else rest) if option not in known]
    return f"{name} has no option {wrong[0]}" if wrong else None


def test_each_command_that_is_advised_can_be_typed(group: Any) -> None:
    wrong = {where: said for where, *command in commands() if (said := problem(group, *command))}
    assert wrong == {}


def test_enough_commands_are_found_and_wrong_ones_are_seen(group: Any) -> None:
    assert len({name for _, name, _, _ in commands()} & set(VERBS)) > 35
    assert problem(group, "cancle", "", "") is not None
    assert problem(group, "interact", "answer", "") is not None
    assert problem(group, "worktrees", "remove", " {} --force-it") is not None
    assert problem(group, "spawn", "", " --queue -- make --keep-going") is None

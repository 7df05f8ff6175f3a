"""Reduces a person's rules of Codex (`rules/*.rules`) to those that forbid something, or have it asked about.

The files are Starlark. What is written with literals alone is read, as Codex's own "never ask again" and nearly every
person writes it. It is written anew, so that nothing is left of what was not understood.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.lean import NamedTuple

#: What a rule decides that takes something away. Without a decision, a rule of a command allows it.
_RESTRICTS = {"prefix_rule": ("forbidden", "prompt"), "network_rule": ("forbidden", "deny", "prompt")}
#: The arguments of each function, in Codex's order: they may come without their names.
_ARGUMENTS = {
    "prefix_rule": ("pattern", "decision", "match", "not_match", "justification"),
    "network_rule": ("host", "protocol", "decision", "justification"),
    # Where a program lies whose rules are by its bare name: without it, they would miss its path.
    "host_executable": ("name", "paths"),
}
#: They only test the file that they stand in.
_LEFT_OUT = ("match", "not_match")
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


class Restrictions(NamedTuple):
    """The rules that are left of some files, as one file, and what could not be read."""

    text: str
    #: `FILE:LINE` of each.
    unread: list[str]


def restrictions_in(files: Mapping[str, bytes]) -> Restrictions:
    """Return the rules in files, by their names, that take something away.

    >>> text = b'prefix_rule(pattern=["git", "push"], decision="prompt")' + bytes([10]) + b'prefix_rule(["touch"])'
    >>> restrictions_in({"default.rules": text})
    Restrictions(text='prefix_rule(pattern=["git", "push"], decision="prompt")\\n', unread=[])
    """
    rules: list[str] = []
    unread: list[str] = []
    for name, content in sorted(files.items()):
        try:
            statements = ast.parse(content.decode()).body
        except _UNREADABLE as error:
            unread.append(f"{name}:{getattr(error, 'lineno', None) or 1}")
            continue
        for statement in statements:
            try:
                rules += _kept(statement)
            except _UNREADABLE:
                unread.append(f"{name}:{statement.lineno}")
    return Restrictions("".join(f"{rule}\n" for rule in rules), unread)


def _kept(statement: ast.stmt) -> Iterator[str]:
    """Yield the rule of a statement, if it takes something away.

    Raises:
        ValueError: It is more than a rule of literals.
    """
    match statement:
        case ast.Expr(ast.Constant()):
            return  # A comment in the form of a text.
        case ast.Expr(ast.Call(ast.Name(function), positional, named)) if function in _ARGUMENTS:
            arguments = dict(zip(_ARGUMENTS[function], map(ast.literal_eval, positional), strict=False))
            arguments |= {str(one.arg): ast.literal_eval(one.value) for one in named}
        case _:
            raise ValueError("not a rule")
    if not _is_sound(function, arguments):
        raise ValueError("not a rule that Codex would take")
    if function not in _RESTRICTS or arguments.get("decision", "allow") in _RESTRICTS[function]:
        given = (
            f"{name}={json.dumps(value, ensure_ascii=False)}"
            for name, value in arguments.items()
            if name not in _LEFT_OUT
        )
        yield f"{function}({', '.join(given)})"


def _is_sound(function: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether Codex takes a rule: one that it does not take would cost all the others of its file."""
    if not arguments.keys() <= set(_ARGUMENTS[function]) or arguments.get("justification") == "":
        return False
    texts = {name: value for name, value in arguments.items() if name not in (*_LEFT_OUT, "pattern", "paths")}
    if not all(isinstance(value, str) for value in texts.values()):
        return False
    match function:
        case "prefix_rule":
            decision = arguments.get("decision", "allow")
            return _is_pattern(arguments.get("pattern")) and decision in ("allow", *_RESTRICTS[function])
        case "network_rule":
            return {"host", "protocol"} <= texts.keys() and texts.get("decision") in ("allow", *_RESTRICTS[function])
        case _:
            paths = arguments.get("paths")
            return (
                "name" in texts and isinstance(paths, list) and all(_is_program(path, texts["name"]) for path in paths)
            )


def _is_program(path: Any, name: str) -> bool:
    return isinstance(path, str) and path.startswith(("/", "~/")) and path.rpartition("/")[2] == name


def _is_pattern(value: Any) -> bool:
    """Return whether this is the beginning of a command: words, and lists of words of which one has to match."""
    lists = [one if isinstance(one, list) else [one] for one in value] if isinstance(value, list) else []
    return bool(lists) and all(one and all(isinstance(word, str) for word in one) for one in lists)

"""Edits JSON files of other programs as text: everything else in them keeps its bytes.

Parsing and dumping them would keep the meaning, but lose the layout that a person gave the file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.decoder import JSONDecoder
from typing import Any

from agentctl.lean import NamedTuple

_SPACE = " \t\r\n"
_DECODER = JSONDecoder()
DEFAULT_INDENT = "  "

Path = Sequence[str]


class NotJson(ValueError):
    """The text is not a plain JSON object: it may have comments, or another form."""


class _Part(NamedTuple):
    """A member of an object or an item of an array: its start, the start of its value, and the end of both."""

    key: str | None
    start: int
    value: int
    end: int


class _Whole(NamedTuple):
    """An object or an array: the offsets of its first and its last character, and its parts."""

    start: int
    close: int
    parts: list[_Part]


def parse_json(text: str) -> dict[str, Any]:
    """Return the object that a file holds.

    Raises:
        NotJson: The text is not an object, or has comments.
    """
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error
    if not isinstance(value, dict):
        raise NotJson("it is not an object")
    return value


def set_member(text: str, path: Path, value: Any) -> str:
    """Return the text with a member set; missing objects on the path to it are created.

    >>> set_member('{"a": 1}', ["b", "c"], 2)
    '{"a": 1, "b": {"c": 2}}'
    """
    parse_json(text)
    text = text if text.strip() else "{}\n"
    known, where = _reach(text, path)
    if len(known) == len(path):
        return _replaced(text, where, value)
    for key in reversed(path[len(known) + 1 :]):
        value = {key: value}
    return _added(text, where, path[len(known)], value)


def add_item(text: str, path: Path, value: Any) -> str:
    """Return the text with an item appended to an array, unless it is there already.

    >>> add_item('{"a": ["x"]}', ["a"], "y")
    '{"a": ["x", "y"]}'
    """
    known, where = _reach(text, path) if text.strip() else ([], 0)
    if len(known) < len(path):
        return set_member(text, path, [value])
    if text[where] != "[":
        raise NotJson(f"{'.'.join(path)} is not an array")
    return text if value in _DECODER.raw_decode(text, where)[0] else _added(text, where, None, value)


def remove_member(text: str, path: Path) -> str:
    """Return the text without a member; unchanged where there is none.

    >>> remove_member('{"a": 1, "b": 2}', ["a"])
    '{"b": 2}'
    """
    known, where = _reach(text, path[:-1])
    if len(known) < len(path) - 1 or text[where] != "{":
        return text
    whole = _parts(text, where)
    for number, part in enumerate(whole.parts):
        if part.key == path[-1]:
            return _cut(text, whole, number)
    return text


def remove_item(text: str, path: Path, value: Any) -> str:
    """Return the text without an item of an array; unchanged where there is none.

    >>> remove_item('{"a": ["x", "y"]}', ["a"], "y")
    '{"a": ["x"]}'
    """
    known, where = _reach(text, path)
    if len(known) < len(path) or text[where] != "[":
        return text
    whole = _parts(text, where)
    for number, part in enumerate(whole.parts):
        if _DECODER.raw_decode(text, part.value)[0] == value:
            return _cut(text, whole, number)
    return text


def lookup(value: Any, path: Path) -> Any:
    """Return the value at a path of a parsed file; None where there is none."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


# -- the text ----------------------------------------------------------------------------------------------------------


def _reach(text: str, path: Path) -> tuple[list[str], int]:
    """Return the part of a path that exists, and where the last value on it begins."""
    parse_json(text)
    where, known = _skip(text, 0), list[str]()
    for key in path:
        if text[where] != "{":
            raise NotJson(f"{'.'.join(known)} is not an object")
        found = [part for part in _parts(text, where).parts if part.key == key]
        if not found:
            break
        known.append(key)
        where = found[-1].value  # Of duplicate keys the last one counts.
    return known, where


def _parts(text: str, start: int) -> _Whole:
    is_object = text[start] == "{"
    at, parts = _skip(text, start + 1), list[_Part]()
    while text[at] not in "}]":
        begin, key = at, None
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        value = at
        _, at = _DECODER.raw_decode(text, value)
        parts.append(_Part(key, begin, value, at))
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return _Whole(start, at, parts)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _added(text: str, where: int, key: str | None, value: Any) -> str:
    whole = _parts(text, where)
    own = _indent_at(text, where)
    if whole.parts:
        gap = text[whole.start + 1 : whole.parts[0].start]
        before = text[: whole.parts[-1].end] + ("," + gap if "\n" in gap else ", ")
        inner = gap.rpartition("\n")[2] if "\n" in gap else None
        return before + _dumped(key, value, text, inner) + text[whole.parts[-1].end :]
    if "\n" not in text.strip() and text.strip() != "{}":
        return text[: where + 1] + _dumped(key, value, text, None) + text[whole.close :]
    inner = own + _unit(text)
    body = f"\n{inner}{_dumped(key, value, text, inner)}\n{own}"
    return text[: where + 1] + body + text[whole.close :]


def _replaced(text: str, where: int, value: Any) -> str:
    _, end = _DECODER.raw_decode(text, where)
    indent = _indent_at(text, where) if "\n" in text.strip() else None
    return text[:where] + _dumped(None, value, text, indent) + text[end:]


def _dumped(key: str | None, value: Any, text: str, indent: str | None) -> str:
    """Return a value as text, laid out like its file: `indent` is that of its own line, None for a single line."""
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if indent is None:
        return name + json.dumps(value, ensure_ascii=False)
    dumped = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    return name + dumped.replace("\n", f"\n{indent}")


def _unit(text: str) -> str:
    """Return the indentation of one level: that of the file's first member."""
    start = _skip(text, 0)
    whole = _parts(text, start)
    gap = text[start + 1 : whole.parts[0].start] if whole.parts else ""
    return gap.rpartition("\n")[2] or DEFAULT_INDENT if "\n" in gap else DEFAULT_INDENT


def _indent_at(text: str, where: int) -> str:
    """Return the indentation of the line that an offset is in."""
    line = text[text.rfind("\n", 0, where) + 1 : where]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _cut(text: str, whole: _Whole, number: int) -> str:
    parts = whole.parts
    if len(parts) == 1:
        return text[: whole.start + 1] + text[whole.close :]
    if number == 0:
        return text[: parts[0].start] + text[parts[1].start :]
    return text[: parts[number - 1].end] + text[parts[number].end :]

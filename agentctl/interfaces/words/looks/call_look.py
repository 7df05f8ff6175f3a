"""A call as what it would do: an edit as a diff, a written file as its lines, a command as a command.

Nothing of a call is lost: what a look does not show is among its other arguments, and a call whose arguments are not
as they should be has no look at all. Its texts are as the agent wrote them, and not yet safe to show.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from agentctl.domain.agent.telling_argument import DESCRIPTION
from agentctl.domain.text.words_diff import ADDED, KEPT, REMOVED, DiffLine, Range, changed_lines, lines_diff
from agentctl.interfaces.words.looks.call_kinds import CHANGES, PLANS, RUNS, tool_kind
from agentctl.interfaces.words.looks.look import TextLook
from agentctl.lean import NamedTuple

#: The names that programs have for one argument.
_COMMANDS = ("command", "cmd")
_PATHS = ("file_path", "filePath", "path", "absolute_path")
_OLDS = ("old_string", "oldString", "oldText", "old_str")
_NEWS = ("new_string", "newString", "newText", "new_str")
_CONTENTS = ("content", "file_text", "contents")
_EVERYWHERE = ("replace_all", "replaceAll")
#: With one of these a text is not what a file, or a part of it, is to be afterwards: added to it, say, or removed.
_OTHERWISE = ("append", "edit_mode", "insert_line", "mode")
#: What Codex says of each file, and the name of the argument that has what is written into it.
_WRITTEN, _NOT_WRITTEN, _DIFF_OF = ("add", "update"), ("delete", "move"), "diff of "
_LOOKS = {KEPT: TextLook.TEXT, REMOVED: TextLook.REMOVED, ADDED: TextLook.ADDED}
_TODO_SIGNS = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}
_MOST_TODOS = 100

Arguments = Mapping[str, Any]


class CallLine(NamedTuple):
    """A line of what a call would do."""

    #: What stands before it: `+`, `-`, `$`.
    sign: str
    text: str
    look: TextLook = TextLook.TEXT
    #: What of a changed line is new, or gone.
    words: tuple[Range, ...] = ()


class CallPart(NamedTuple):
    """What a call would do to one thing."""

    #: The tool, or what Codex says of a file.
    verb: str
    #: The file; empty where there is none.
    subject: str
    lines: tuple[CallLine, ...]


class CallLook(NamedTuple):
    """A call as what it would do."""

    parts: tuple[CallPart, ...]
    #: What the agent says about it.
    said: str
    #: The arguments that are in no part.
    rest: Arguments


def call_look(tool: str, arguments: object) -> CallLook | None:
    """Return what a call would do; None where only its arguments can be shown.

    >>> look = call_look("Edit", {"file_path": "a", "old_string": "x", "new_string": "y", "odd": 1})
    >>> [(line.sign, line.text) for line in look.parts[0].lines], look.rest
    ([('-', 'x'), ('+', 'y')], {'odd': 1})
    """
    if not isinstance(arguments, Mapping):
        return None
    given, kind = _Given(arguments), tool_kind(tool)
    parts = [*_run(tool, given)] if kind == RUNS else [*_change(tool, given)] if kind == CHANGES else []
    return CallLook(tuple(parts), given.take_text((DESCRIPTION,)) or "", given.rest()) if parts else None


class _Given:
    """The arguments of a call that no part shows yet."""

    def __init__(self, arguments: Arguments) -> None:
        self._left = dict(arguments)

    def take_text(self, names: Sequence[str]) -> str | None:
        """Return the first of some arguments that is there, if it is a text."""
        found = self._first(names)
        return self._left.pop(found) if found is not None and isinstance(self._left[found], str) else None

    def has(self, names: Sequence[str]) -> bool:
        """Return whether the first of some arguments that is there is a text."""
        found = self._first(names)
        return found is not None and isinstance(self._left[found], str)

    def take(self, name: str) -> Any:
        """Return an argument of any type."""
        return self._left.pop(name)

    def get(self, name: str) -> Any:
        """Return an argument, which stays."""
        return self._left.get(name)

    def drop_no(self, names: Sequence[str]) -> None:
        """Leave out an argument that says no, as if it were not there."""
        for name in names:
            if self._left.get(name) is False:
                del self._left[name]

    def _first(self, names: Sequence[str]) -> str | None:
        return next((name for name in names if name in self._left), None)

    def rest(self) -> Arguments:
        """Return what nothing has shown."""
        return self._left


def _run(tool: str, given: _Given) -> Iterator[CallPart]:
    for name in _COMMANDS:
        words = given.get(name)
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            given.take(name)
            yield CallPart(tool, "", (*_command_lines(shlex.join(words)),))
            return
    line = given.take_text(_COMMANDS)
    if line is not None:
        yield CallPart(tool, "", (*_command_lines(line),))


def _command_lines(command: str) -> Iterator[CallLine]:
    for place, line in enumerate(command.split("\n")):
        yield CallLine(" " if place else "$", line, TextLook.CODE)


def _change(tool: str, given: _Given) -> Iterator[CallPart]:
    if any(name in given.rest() for name in _OTHERWISE):
        return
    if isinstance(given.get("changes"), list):
        yield from _changes(tool, given)
    elif given.has(_PATHS) and isinstance(given.get("edits"), list):
        yield from _edits(tool, given)
    elif given.has(_PATHS) and given.has(_OLDS) and given.has(_NEWS):
        path, old, new = (given.take_text(names) for names in (_PATHS, _OLDS, _NEWS))
        given.drop_no(_EVERYWHERE)
        yield CallPart(tool, path or "", (*_diff(old, new or ""),))
    elif given.has(_PATHS) and given.has(_CONTENTS):
        path, content = given.take_text(_PATHS), given.take_text(_CONTENTS)
        yield CallPart(tool, path or "", (*_diff(None, content or ""),))


def _edits(tool: str, given: _Given) -> Iterator[CallPart]:
    """Yield the edits of one file, each for itself; nothing where one of them is odd."""
    edits = [_Given(edit) for edit in given.get("edits") if isinstance(edit, Mapping)]
    texts = []
    for edit in edits:
        edit.drop_no(_EVERYWHERE)
        texts.append((edit.take_text(_OLDS), edit.take_text(_NEWS)))
    is_odd = len(edits) != len(given.get("edits")) or any(edit.rest() for edit in edits)
    if not edits or is_odd or any(old is None or new is None for old, new in texts):
        return
    given.take("edits")
    path = given.take_text(_PATHS) or ""
    for old, new in texts:
        yield CallPart(tool, path, (*_diff(old, new or ""),))


def _changes(tool: str, given: _Given) -> Iterator[CallPart]:
    """Yield the changes of several files, as Codex tells them, or ACP; nothing where one is odd."""
    changes = given.get("changes")
    parts = [_changed_file(tool, change, given) if isinstance(change, Mapping) else None for change in changes]
    if not changes or None in parts:
        return
    given.take("changes")
    for change in changes:
        if change.get("kind") in _WRITTEN:
            given.take_text((f"{_DIFF_OF}{change['path']}",))
    yield from filter(None, parts)


def _changed_file(tool: str, change: Arguments, given: _Given) -> CallPart | None:
    path, kind = change.get("path"), change.get("kind")
    if not isinstance(path, str):
        return None
    if change.keys() == {"path", "oldText", "newText"}:
        old, new = change["oldText"], change["newText"]
        is_known = isinstance(new, str) and isinstance(old, str | None)
        return CallPart(tool, path, (*_diff(old, new),)) if is_known else None
    if change.keys() != {"path", "kind"} or kind not in (*_WRITTEN, *_NOT_WRITTEN):
        return None
    text = given.get(f"{_DIFF_OF}{path}") if kind in _WRITTEN else ""
    if not isinstance(text, str):
        return None
    return CallPart(str(kind), path, (*(_patch(text) if kind == "update" else _written(text)),))


def _diff(old: str | None, new: str) -> Iterator[CallLine]:
    return map(_line_of, lines_diff(old, new)) if old else _written(new)


def _written(text: str) -> Iterator[CallLine]:
    """Yield the lines of a file that is written; the last one mostly ends with a line break, as all others do."""
    lines = text.removesuffix("\n").split("\n") if text else []
    yield from (CallLine(ADDED, line, TextLook.ADDED) for line in lines)
    if text and not text.endswith("\n"):
        yield CallLine("\\", "no line break at its end", TextLook.QUIET)


def _line_of(line: DiffLine) -> CallLine:
    return CallLine(line.kind, line.text, _LOOKS[line.kind], line.words)


def _patch(text: str) -> Iterator[CallLine]:
    """Yield the lines of a patch: what is removed and added stands opposite each other."""
    runs = [(kind, [*lines]) for kind, lines in groupby(text.removesuffix("\n").split("\n"), key=_kind_in_patch)]
    at = 0
    while at < len(runs):
        kind, lines = runs[at]
        behind = runs[at + 1] if at + 1 < len(runs) else ("", [])
        if kind == REMOVED and behind[0] == ADDED:
            changed = changed_lines(_without_sign(lines), _without_sign(behind[1]))
            yield from map(_line_of, changed)
            at += 2
            continue
        for line in lines:
            yield CallLine(line[:1], line[1:], _LOOKS[kind]) if kind in _LOOKS else CallLine("", line, TextLook.QUIET)
        at += 1


def _kind_in_patch(line: str) -> str:
    return line[:1] if line[:1] in _LOOKS and line else ""


def _without_sign(lines: Iterable[str]) -> list[str]:
    return [line[1:] for line in lines]


def todo_look(tool: str, arguments: object) -> CallLook | None:
    """Return the list of things to do that a call writes down; None if it does not. Only for looking at.

    >>> look = todo_look("TodoWrite", {"todos": [{"content": "Look", "status": "completed"}], "merge": True})
    >>> look.parts[0].lines[0][:2], look.rest
    (('[x]', 'Look'), {'merge': True})
    """
    given = arguments if isinstance(arguments, Mapping) and tool_kind(tool) == PLANS else {}
    name = next((name for name in ("todos", "plan") if isinstance(given.get(name), list)), "")
    lines = [_todo_line(one) for one in given.get(name, ())[:_MOST_TODOS]]
    if None in lines or not lines:
        return None
    part = CallPart(tool, "", tuple(line for line in lines if line is not None))
    return CallLook((part,), "", {key: value for key, value in given.items() if key != name})


def _todo_line(one: object) -> CallLine | None:
    if not isinstance(one, Mapping):
        return None
    text = next((one[key] for key in ("content", "step", "description") if isinstance(one.get(key), str)), None)
    sign = _TODO_SIGNS.get(str(one.get("status")), "[ ]")
    return None if text is None else CallLine(sign, text, TextLook.QUIET if sign == "[x]" else TextLook.TEXT)

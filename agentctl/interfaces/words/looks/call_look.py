"""A call as what it would do: an edit as a diff, a written file as its lines, a command as a command.

Nothing of a call is lost: what a look does not show is among its other arguments, at any depth, and a call of which a
look would be wrong has none. Its texts are as the agent wrote them, and not yet safe to show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from agentctl.domain.agent.shell_line import shell_line
from agentctl.domain.agent.telling_argument import DESCRIPTION
from agentctl.domain.text.plaintext import distinct, plain, whole
from agentctl.domain.text.words_diff import ADDED, KEPT, REMOVED, DiffLine, Range, changed_lines, lines_diff
from agentctl.encoding import as_utf8
from agentctl.interfaces.words.looks.call_kinds import CHANGES, PLANS, RUNS, tool_kind
from agentctl.interfaces.words.looks.look import TextLook
from agentctl.lean import NamedTuple

#: The names that programs have for one argument.
_COMMANDS = ("command", "cmd")
_PATHS = ("file_path", "filePath", "path", "absolute_path")
#: Of a call that reads, also with several files at once.
READ_PATHS = (*_PATHS, "notebook_path", "paths")
_OLDS = ("old_string", "oldString", "oldText", "old_str")
_NEWS = ("new_string", "newString", "newText", "new_str")
_CONTENTS = ("content", "file_text", "contents")
_EVERYWHERE = ("replace_all", "replaceAll")
#: With one of these a text is not what a file, or a part of it, is to be afterwards: added to it, say, or removed.
_OTHERWISE = ("append", "edit_mode", "insert_line", "mode")
#: What Codex says of each file, and the name of the argument that has what is written into it.
_WRITTEN, _NOT_WRITTEN, _DIFF_OF = ("add", "update"), ("delete", "move"), "diff of "
_LOOKS = {KEPT: TextLook.TEXT, REMOVED: TextLook.REMOVED, ADDED: TextLook.ADDED}
_TODOS, _TODO_TEXTS = ("todos", "plan"), ("content", "step", "description")
_TODO_SIGNS = {
    **dict.fromkeys(("completed", "done"), "[x]"), **dict.fromkeys(("in_progress", "inProgress"), "[>]"),
    "pending": "[ ]", "cancelled": "[-]",
}  # fmt: skip
#: The text of a thing to do in other words, and the program's own number for it.
_SAID_AGAIN = ("activeForm", "id")

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
    #: The arguments that are in no part; one that lies deeper is named by where it is: `edits[1].replace_all`.
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
    return _look(parts, given.take_text((DESCRIPTION,)) or "", given)


def _look(parts: Sequence[CallPart], said: str, given: _Given) -> CallLook | None:
    rest = given.rest()
    return None if not parts or rest is None else CallLook(tuple(parts), said, rest)


class _Given:
    """The arguments of a call that no part shows yet, with those that lie deeper."""

    def __init__(self, arguments: Arguments) -> None:
        #: Those that do not lie deeper.
        self.left = dict(arguments)
        self._inner: dict[str, _Given] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether an argument is there that nothing has shown."""
        return name in self.left

    def take_text(self, names: Sequence[str]) -> str | None:
        """Return the first of some arguments that is there, if it is a text."""
        return self.take(names) if self.has(names) else None

    def has(self, names: Sequence[str]) -> bool:
        """Return whether the first of some arguments that is there is a text."""
        return isinstance(self.get(names), str)

    def take(self, names: Sequence[str]) -> Any:
        """Return the first of some arguments that is there, of any type."""
        found = next((name for name in names if name in self), None)
        return None if found is None else self.left.pop(found)

    def get(self, names: Sequence[str]) -> Any:
        """Return the first of some arguments that is there, which stays."""
        return next((self.left[name] for name in names if name in self), None)

    def take_each(self, name: str) -> Sequence[_Given]:
        """Return a list of mappings, each as arguments of its own; an empty one, if it is anything else."""
        value = self.get((name,))
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            return ()
        found = [_Given(one) for one in self.take((name,))]
        self._inner |= {f"{name}[{place}].": one for place, one in enumerate(found)}
        return found

    def drop(self, names: Sequence[str]) -> None:
        """Leave out arguments that say nothing new."""
        for name in names:
            self.left.pop(name, None)

    def drop_no(self, names: Sequence[str]) -> None:
        """Leave out an argument that says no, as if it were not there."""
        self.drop([name for name in names if self.left.get(name) is False])

    @property
    def is_otherwise(self) -> bool:
        """Whether a text in it is not what is then in a file."""
        return any(name in self for name in _OTHERWISE)

    def rest(self) -> Arguments | None:
        """Return what nothing has shown; None where one could be taken for another."""
        inner = {where + key: value for where, one in self._inner.items() for key, value in one.left.items()}
        return None if inner.keys() & self.left.keys() else {**self.left, **inner}


def _run(tool: str, given: _Given) -> Iterator[CallPart]:
    command = given.get(_COMMANDS)
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        command = shell_line(command)
    if isinstance(command, str) and command:
        given.take(_COMMANDS)
        yield CallPart(tool, "", (*_command_lines(command),))


def _command_lines(command: str) -> Iterator[CallLine]:
    for place, line in enumerate(command.split("\n")):
        yield CallLine(" " if place else "$", line, TextLook.CODE)


def _change(tool: str, given: _Given) -> Iterator[CallPart]:
    if given.is_otherwise:
        return
    if "changes" in given:
        yield from _changes(tool, given)
    elif given.has(_PATHS) and "edits" in given:
        yield from _edits(tool, given)
    elif given.has(_PATHS) and given.has(_OLDS) and given.has(_NEWS):
        yield _edit(tool, given.take_text(_PATHS) or "", given)
    elif given.has(_PATHS) and given.has(_CONTENTS) and not any(name in given for name in (*_OLDS, *_NEWS)):
        path, content = given.take_text(_PATHS), given.take_text(_CONTENTS)
        yield CallPart(tool, path or "", (*_diff(None, content or ""),))


def _edits(tool: str, given: _Given) -> Iterator[CallPart]:
    """Yield the edits of one file, each for itself; nothing where one of them is odd."""
    edits = given.take_each("edits")
    if any(edit.is_otherwise or not (edit.has(_OLDS) and edit.has(_NEWS)) for edit in edits):
        return
    path = given.take_text(_PATHS) or ""
    yield from (_edit(tool, path, edit) for edit in edits)


def _edit(tool: str, path: str, edit: _Given) -> CallPart:
    old, new = edit.take_text(_OLDS), edit.take_text(_NEWS)
    edit.drop_no(_EVERYWHERE)
    return CallPart(tool, path, (*_diff(old, new or ""),))


def _changes(tool: str, given: _Given) -> Iterator[CallPart]:
    """Yield the changes of several files, as Codex tells them, or ACP; nothing where one is odd."""
    parts = [_changed_file(tool, change, given) for change in given.take_each("changes")]
    yield from () if None in parts else filter(None, parts)


def _changed_file(tool: str, change: _Given, given: _Given) -> CallPart | None:
    path, has_texts = change.take_text(("path",)), any(name in change for name in (*_OLDS, *_NEWS))
    if path is None or change.is_otherwise:
        return None
    if "kind" in change:
        return None if has_texts else _told_file(path, change.take(("kind",)), given)
    old, new = change.take(_OLDS), change.take(_NEWS)
    is_known = isinstance(new, str) and isinstance(old, str | None)
    return CallPart(tool, path, (*_diff(old, new),)) if is_known else None


def _told_file(path: str, kind: object, given: _Given) -> CallPart | None:
    """Return what becomes of a file by the kind of its change; what is written into it is an argument of its own."""
    if kind in _NOT_WRITTEN:
        return CallPart(str(kind), path, ())
    text = given.get((f"{_DIFF_OF}{path}",)) if kind in _WRITTEN else None
    if not isinstance(text, str):
        return None
    given.drop((f"{_DIFF_OF}{path}",))
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
    if not isinstance(arguments, Mapping) or tool_kind(tool) != PLANS:
        return None
    given = _Given(arguments)
    todos = given.take_each(next((name for name in _TODOS if name in given), ""))
    if not todos or not all(todo.has(_TODO_TEXTS) for todo in todos):
        return None
    return _look([CallPart(tool, "", tuple(map(_todo_line, todos)))], "", given)


def _todo_line(todo: _Given) -> CallLine:
    text, priority = todo.take_text(_TODO_TEXTS) or "", todo.take_text(("priority",))
    sign = _TODO_SIGNS.get(str(todo.get(("status",))))
    todo.drop([name for name in _SAID_AGAIN if isinstance(todo.get((name,)), str | int)])
    todo.drop(("status",) if sign else ())
    look = TextLook.QUIET if sign in ("[x]", "[-]") else TextLook.TEXT
    return CallLine(sign or "[ ]", f"{text} ({priority})" if priority else text, look)


def is_of_tabs(lines: Sequence[CallLine]) -> bool:
    """Return whether a change may be one of tabs: with spaces for them, what is removed and added could look alike."""
    removed, added = ({line.text for line in lines if line.sign == sign} for sign in (REMOVED, ADDED))
    if not removed or not added:
        return False
    has_tabs = [any("\t" in text for text in texts) for texts in (removed, added)]
    alike = {line_of_call(text) for text in removed - added} & {line_of_call(text) for text in added - removed}
    is_in_word = any("\t" in line.text[begin:end] for line in lines for begin, end in line.words)
    return any(has_tabs) and bool(alike or is_in_word or not all(has_tabs))


def line_of_call(text: str, *, spells_tabs: bool = False) -> str:
    """Return a line of a call, safe to show: also what nobody would see is there, and a line break in a name."""
    return distinct(whole(plain(as_utf8(text), keep="" if spells_tabs else "\t"))).expandtabs(4)

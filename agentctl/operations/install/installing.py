"""`install`: the changes to an agent program's own files that teach it to delegate: planned, made, and undone.

A file is written whole, and a copy of its earlier content is kept beside it. The undo uses that copy: a file that
nobody has touched since gets its old bytes back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from agentctl.adapters.files import make_folders, replace_if_same, storage_errors, write_whole
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.personal import home_folder
from agentctl.domain.text.containment import lies_in
from agentctl.errors import Refused
from agentctl.operations.install.agent_files import edits_for
from agentctl.operations.install.edits import Edit

BACKUP = ".before-agentctl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A file before and after a change; None means that it does not exist."""

    path: str
    before: str | None
    after: str | None
    #: The path of the copy from before the first change: an install makes it, an undo removes it.
    backup: str
    #: The folder that stays, whatever is removed below it: the project, or the person's home.
    top: str

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = unified_diff(old, new, self.path if self.before is not None else os.devnull, self.path, n=2)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def plan(client: str, *, undo: bool, project: str | None, hooks: bool, environ: Mapping[str, str]) -> list[Change]:
    """Return the changes that are to be made; [] if there are none. Changes nothing itself.

    Raises:
        Refused: A file cannot be changed safely; the hint says what to do by hand.
    """
    texts: dict[str, tuple[str | None, str | None]] = {}
    for edit in edits_for(client, project=project, hooks=hooks or (undo and client == "claude"), environ=environ):
        path = os.path.realpath(edit.path)  # A link, as to a folder of dotfiles, stays one.
        if project is not None and not lies_in(path, os.path.realpath(project)):
            raise Refused(f"{edit.path} leads out of the project, to {path}", hint="look at that link")
        before, now = texts.get(path) or (_read(path),) * 2
        texts[path] = before, _undone(edit, path, now) if undo else edit.applied(now)
    if undo:
        texts = {path: (before, _restored(path, before, after)) for path, (before, after) in texts.items()}
    top = os.path.realpath(project if project is not None else home_folder(environ))
    changes = [
        Change(path=path, before=before, after=after, backup=path + BACKUP, top=top)
        for path, (before, after) in texts.items()
    ]
    return [change for change in changes if change.before != change.after]


def _undone(edit: Edit, path: str, now: str | None) -> str | None:
    if now is None:
        return None
    return edit.removed(now, _read(path + BACKUP))


def _restored(path: str, now: str | None, after: str | None) -> str | None:
    """Return the old bytes if what is left has the same meaning: then nobody has changed the file since."""
    before = _read(path + BACKUP)
    if before is None or after is None or now is None:
        return after
    return before if _essence(before) == _essence(after) else after


def _essence(text: str) -> object:
    import json

    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    return [line.rstrip() for line in text.strip().splitlines()]


def carry_out_changes(changes: Sequence[Change], *, undo: bool) -> None:
    """Make the changes; if one fails, undo those before it."""
    done: list[Change] = []
    try:
        for change in changes:
            _write(change, undo=undo)
            done.append(change)
    except BaseException:
        for change in reversed(done):
            _put(change.path, change.before)
            if not undo and os.path.exists(change.backup):
                os.unlink(change.backup)
        raise
    if undo:
        for change in changes:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(change.backup)


def _write(change: Change, *, undo: bool) -> None:
    saved = f"{change.path} was changed meanwhile, or is open for writing"
    if _read(change.path) != change.before:
        raise Refused(saved, hint="look at it, then try again")
    has_backup = undo or change.before is None or os.path.exists(change.backup)
    try:
        make_folders(os.path.realpath(os.path.dirname(change.path)))
        if not has_backup:
            _put(change.backup, change.before)
        is_made = _make(change)
    except OSError as error:
        raise Refused(f"{change.path} cannot be written: {error.strerror}", hint="nothing was changed") from error
    if not is_made:
        if not has_backup:
            os.unlink(change.backup)
        raise Refused(saved, hint="look at it, then try again")
    if change.after is None:
        _remove_empty(os.path.dirname(change.path), change.top)


def _make(change: Change) -> bool:
    """Make one change; return False where the program or a person has saved the file since it was read."""
    if change.before is None or change.after is None:
        _put(change.path, change.after)
        return True
    mode = _mode_of(change.path)
    is_made = replace_if_same(change.path, _encoded(change.before), _encoded(change.after))
    if is_made:
        os.chmod(change.path, mode)
    return is_made


def _remove_empty(folder: str, top: str) -> None:
    """Remove a folder and those above it, as far as they are empty."""
    with contextlib.suppress(OSError):
        while folder != top and lies_in(folder, top):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


def _put(path: str, text: str | None) -> None:
    with storage_errors(path, "write"):
        if text is None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return
        mode = _mode_of(path)
        write_whole(path, _encoded(text))
        os.chmod(path, mode)


def _mode_of(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        return 0o600


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _read(path: str) -> str | None:
    try:
        return read_bytes(path).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None

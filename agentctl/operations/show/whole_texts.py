"""Texts that were too long to show, kept whole: each in a file that holds it and nothing else.

Whoever tells of a cut text makes its file. It is named after its content, so what an earlier answer named stays as it
was told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from agentctl.adapters.files import make_folder, write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import WorkerDir
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.where.ownership import is_own

#: Readers of files for models cut a line at 2,000 characters (Claude Code's Read does, 2.1), as JavaScript counts them:
#: some characters are two there.
_LONGEST_LINE, _WIDTH = 2000, 1000
_NAME_CHARACTERS = 16


class KeptText(NamedTuple):
    """Where a text is: as it is, and, where it has longer lines than readers show, in shorter ones."""

    path: str
    wrapped: str | None


def keep_text(worker: WorkerDir, text: str) -> KeptText | None:
    """Put a text of a worker into a file; None where that cannot be: another person's task, a read-only folder."""
    try:
        return put_text(worker, text) if is_own(worker.task) else None
    except (AgentctlError, OSError):
        return None


def put_text(worker: WorkerDir, text: str) -> KeptText:
    """Put a text of one's own worker into a file.

    Raises:
        StorageError: The disk is full or read-only.
        OddFile: Something else lies in the place of the folder.
    """
    data = text.encode()
    path = place_of(worker, hashlib.sha256(data).hexdigest()).path
    make_folder(worker.texts)
    _write(path, data)
    return KeptText(path, _put_wrapped(path, text))


def keep_wrapped(worker: WorkerDir, text: str, sha256: str) -> str | None:
    """Put the text of a file that has longer lines than readers show into shorter ones; None where that need not be."""
    try:
        if not is_own(worker.task):
            return None
        make_folder(worker.texts)
        return _put_wrapped(place_of(worker, sha256).path, text)
    except (AgentctlError, OSError):
        return None


def place_of(worker: WorkerDir, sha256: str) -> KeptText:
    """Return where the files of a text with this hash lie, if there are any."""
    path = worker.texts / f"{sha256[:_NAME_CHARACTERS]}.txt"
    return KeptText(path, _wrapped_name(path))


def _wrapped_name(path: str) -> str:
    return f"{path.removesuffix('.txt')}.wrapped.txt"


def _put_wrapped(path: str, text: str) -> str | None:
    lines = text.split("\n")
    if not any(map(_is_long, lines)):
        return None
    wrapped = _wrapped_name(path)
    _write(wrapped, "\n".join(part for line in lines for part in _parts(line)).encode())
    return wrapped


def _write(path: str, data: bytes) -> None:
    """Write it, unless it is there: a worker can put anything into a file of its folder."""
    try:
        is_there = FilePath(path).read_bytes(len(data) + 1) == data
    except (AgentctlError, OSError):
        is_there = False
    if not is_there:
        write_whole(path, data)


def _is_long(line: str) -> bool:
    return len(line) > _WIDTH and len(line.encode("utf-16-le")) > 2 * _LONGEST_LINE


def _parts(line: str) -> Iterator[str]:
    """Yield a line in parts, broken at a space where there is one."""
    begin = 0
    while len(line) - begin > _WIDTH:
        space = line.rfind(" ", begin + 1, begin + _WIDTH)
        end = space if space > 0 else begin + _WIDTH
        yield line[begin:end]
        begin = end + 1 if line.startswith(" ", end) else end
    yield line[begin:]

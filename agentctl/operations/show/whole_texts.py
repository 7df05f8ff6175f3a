"""The full text of whatever was cut for display, each text in a file of its own.

The code that returns a cut text writes its file. The file is named after its content, so a file that an earlier answer
named never changes.
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

#: Tools that read files for models cut each line at 2,000 characters (Claude Code's Read does, 2.1). JavaScript counts
#: them: some characters count as two.
_LONGEST_LINE, _WIDTH = 2000, 1000
_NAME_CHARACTERS = 16


class KeptText(NamedTuple):
    """The file of a text, and a wrapped copy if the text has longer lines than those tools show."""

    path: str
    wrapped: str | None


def keep_text(worker: WorkerDir, text: str) -> KeptText | None:
    """Write a worker's text into a file; None if that is impossible: another person's task, a read-only folder."""
    try:
        return put_text(worker, text) if is_own(worker.task) else None
    except (AgentctlError, OSError):
        return None


def put_text(worker: WorkerDir, text: str) -> KeptText:
    """Write a worker's text into a file; its task must be the user's own.

    Raises:
        StorageError: The disk is full or read-only.
        OddFile: Something else is where the folder should be.
    """
    data = text.encode()
    path = text_paths(worker, hashlib.sha256(data).hexdigest()).path
    make_folder(worker.texts)
    _write(path, data)
    return KeptText(path, _put_wrapped(path, text))


def keep_wrapped(worker: WorkerDir, text: str, sha256: str) -> str | None:
    """Write a wrapped copy of a file's text; None if it has no overlong lines, or the copy cannot be written."""
    try:
        if not is_own(worker.task):
            return None
        make_folder(worker.texts)
        return _put_wrapped(text_paths(worker, sha256).path, text)
    except (AgentctlError, OSError):
        return None


def text_paths(worker: WorkerDir, sha256: str) -> KeptText:
    """Return the paths for a text with this hash; the files need not exist."""
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
    """Write a file, unless it has exactly this content: a worker can put anything into the files of its folder."""
    try:
        is_there = FilePath(path).read_bytes(len(data) + 1) == data
    except (AgentctlError, OSError):
        is_there = False
    if not is_there:
        write_whole(path, data)


def _is_long(line: str) -> bool:
    return len(line) > _WIDTH and len(line.encode("utf-16-le")) > 2 * _LONGEST_LINE


def _parts(line: str) -> Iterator[str]:
    """Yield a line in parts, broken at spaces where possible."""
    begin = 0
    while len(line) - begin > _WIDTH:
        space = line.rfind(" ", begin + 1, begin + _WIDTH)
        end = space if space > 0 else begin + _WIDTH
        yield line[begin:end]
        begin = end + 1 if line.startswith(" ", end) else end
    yield line[begin:]

"""The files that a result names, opened for a reader elsewhere: only these, and only where the worker has worked.

A worker writes the record that names them, and may put something else in their place at any time. So a name counts only
below a folder of the worker's, and no link is followed on the way there.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Sequence
from typing import IO

from agentctl.adapters.opening import OddFile, open_beneath
from agentctl.adapters.personal import home_folder
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import AgentctlError, Next, NotFound, Refused
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.show.one_worker import worktree_of
from agentctl.operations.show.results import read_result
from agentctl.operations.where.locating import find_worker
from agentctl.supervision.worker.spec import read_spec

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import ResultFile, WorkerResult

#: What has become of a file since the worker named it: by size and hash of its record. A large file, or one of which
#: the record has no hash, is not compared.
SAME, CHANGED, GONE, NOT_COMPARED = "same", "changed", "gone", "not compared"
_MOST_COMPARED = 32 << 20
_PIECE = 1 << 20
#: There is no file of that name, or can be none.
_NO_FILE = frozenset({errno.ENOENT, errno.ENAMETOOLONG})


class OpenedFile(NamedTuple):
    """A file of a result, open, and whether it is still what the worker has named."""

    file: IO[bytes]
    state: str


def open_result_file(task: TaskDir, instance: str, path: str) -> OpenedFile:
    """Open a file that the result of a worker names.

    Raises:
        NotFound: The result names no such file, or it is not there any more.
        Refused: It is not in a folder of the worker's, or a link leads there.
    """
    worker = find_worker(task, instance)
    result = read_result(task, instance)
    if path not in _named(result):
        raise NotFound(f"the result of {instance} names no file {path!r}", hint=Next("read result", instance))
    file = _opened(worker, path)
    return OpenedFile(file, _state_of(file, [one for one in result["files"] if one["path"] == path]))


def compared(task: TaskDir, result: WorkerResult) -> WorkerResult:
    """Return a result in which each file says what has become of it."""
    worker = task.worker(result["agentInstance"])
    return {**result, "files": [{**one, "now": _state_now(worker, one)} for one in result["files"]]}


def _state_now(worker: WorkerDir, known: ResultFile) -> str:
    try:
        with _opened(worker, known["path"]) as file:
            return _state_of(file, [known])
    except NotFound:
        return GONE
    except (AgentctlError, OSError):
        return NOT_COMPARED


def _state_of(file: IO[bytes], known: Sequence[ResultFile]) -> str:
    """Return what has become of an open file, by the rows that name it."""
    size = os.fstat(file.fileno()).st_size
    rows = [one for one in known if "sha256" in one]
    if not rows:
        return NOT_COMPARED
    alike = [one for one in rows if one.get("size", size) == size]
    if alike and size > _MOST_COMPARED:
        return NOT_COMPARED
    return SAME if alike and _digest(file, size) in {one["sha256"] for one in alike} else CHANGED


def _digest(file: IO[bytes], size: int) -> str:
    """Return the hash of so much of a file, whose place stays as it is."""
    digest, at = hashlib.sha256(), 0
    while at < size and (piece := os.pread(file.fileno(), min(_PIECE, size - at), at)):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


def _opened(worker: WorkerDir, path: str) -> IO[bytes]:
    """Open a file in a folder of a worker's."""
    for base, folder in _places(worker):
        if os.path.isabs(path) and os.path.normpath(path) == path and path.startswith(f"{folder}/"):
            try:
                return os.fdopen(open_beneath(base, os.path.relpath(path, base)), "rb")
            except OddFile as error:
                raise Refused(error.message) from error
            except PermissionError as error:
                raise Refused(f"{path} cannot be read: {error.strerror}") from error
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise
                raise NotFound(f"{path} is not there any more") from None
    raise Refused(f"{path} is in no folder of {worker.instance}: only what is below the one it worked in is given out")


def _named(result: WorkerResult) -> set[str]:
    """Return the paths that a result has: of its files, and of texts that were cut."""
    paths = [*(one["path"] for one in result["files"]), result.get("path"), result.get("wrapped")]
    cut = result.get("summaryCut")
    paths += [] if cut is None else [cut["path"], cut.get("wrapped")]
    return {path for path in paths if path is not None}


def _places(worker: WorkerDir) -> list[tuple[str, str]]:
    """Return the folders of a worker, each behind the one from which on no link is followed.

    Its own is below a root that the person has named; to the others, no link leads at all. A folder that holds all of a
    person's files is nobody's own.
    """
    root = str(worker.task.root.path)
    worktree, home = worktree_of(worker), os.path.realpath(home_folder(os.environ))
    others = [read_spec(worker.spec).cwd, *([worktree["path"]] if worktree and worktree["path"] else [])]
    own = [one for one in others if os.path.isabs(one) and not f"{home}/".startswith(f"{one.rstrip('/')}/")]
    return [(root, str(worker.path)), *(("/", os.path.normpath(one)) for one in own)]

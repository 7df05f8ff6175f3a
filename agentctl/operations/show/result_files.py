"""The files that a result names, opened for a reader elsewhere: only these, and only where the worker has worked.

A worker writes the record that names them, and may put something else in their place at any time. So a name counts only
below a folder of the worker's, and no link is followed on the way there.
"""

from __future__ import annotations

import os
from typing import IO

from agentctl.adapters.opening import OddFile, open_beneath
from agentctl.adapters.personal import home_folder
from agentctl.adapters.taskdir import TaskDir, WorkerDir
from agentctl.errors import Next, NotFound, Refused
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.show.one_worker import worktree_of
from agentctl.operations.show.results import read_result
from agentctl.operations.where.locating import find_worker
from agentctl.supervision.worker.spec import read_spec

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import WorkerResult


def open_result_file(task: TaskDir, instance: str, path: str) -> IO[bytes]:
    """Open a file that the result of a worker names.

    Raises:
        NotFound: The result names no such file, or it is not there any more.
        Refused: It is not in a folder of the worker's, or a link leads there.
    """
    worker = find_worker(task, instance)
    if path not in _named(read_result(task, instance)):
        raise NotFound(f"the result of {instance} names no file {path!r}", hint=Next("read result", instance))
    for base, folder in _places(worker):
        if os.path.isabs(path) and os.path.normpath(path) == path and path.startswith(f"{folder}/"):
            try:
                return os.fdopen(open_beneath(base, os.path.relpath(path, base)), "rb")
            except OddFile as error:
                raise Refused(error.message) from error
            except FileNotFoundError:
                raise NotFound(f"{path} is not there any more") from None
            except PermissionError as error:
                raise Refused(f"{path} cannot be read: {error.strerror}") from error
    raise Refused(f"{path} is in no folder of {instance}: only what is below the one it worked in is given out")


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

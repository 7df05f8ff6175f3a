"""Which ends a person has looked at: the only state of their own that views have, among the person's files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping

from agentctl.adapters.files import make_folders, read_known, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import state_folder
from agentctl.adapters.tails import file_version
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.names import WorkerId
from agentctl.errors import NotFound
from agentctl.operations.show.current_state import read_task
from agentctl.operations.talk.interacting import find_questions

#: The ends that are kept for one root; the oldest are forgotten, and their workers count as not looked at.
_MOST = 5000


class SeenEnds:
    """The ends of a root's workers that were looked at."""

    def __init__(self, root: Root, environ: Mapping[str, str] = os.environ) -> None:
        name = hashlib.sha256(os.fsencode(root.path)).hexdigest()[:32]
        self.path: FilePath = state_folder(environ) / "seen" / f"{name}.json"
        self._root = root
        self._version: tuple[int, int, int] | None = None
        #: Worker -> the time of the end, or of the question of an idle agent, that was looked at.
        self._ends: dict[str, str] = {}
        self.update()

    def update(self) -> bool:
        """Read what was noted since, by this process or another; return whether there was anything."""
        try:
            version = file_version(self.path)
        except OSError:
            return False
        if version == self._version:
            return False
        self._version = version
        self._ends = _ends_in(read_known(self.path))
        return True

    def has(self, worker: WorkerId, at: str | None) -> bool:
        """Return whether this end of a worker was looked at; `at` is the time of the end."""
        return at is not None and self._ends.get(str(worker)) == at

    def note(self, ends: Mapping[WorkerId, str]) -> None:
        """Note that these ends were looked at.

        Raises:
            StorageError: They could not be noted.
        """
        make_folders(self.path.parent)
        with locked(FilePath(f"{self.path}.lock")):
            known = _ends_in(read_known(self.path))
            for worker, at in ends.items():
                known.pop(str(worker), None)  # The order is that of the notes: the oldest go first.
                known[str(worker)] = at
            kept = dict(list(known.items())[-_MOST:])
            self._write(kept)
        self._version = None
        self.update()

    def forget(self, workers: Collection[WorkerId], *, of_tasks: Collection[str] = ()) -> None:
        """Forget the ends of workers that are gone, and of all workers of tasks that are."""
        names = {str(worker) for worker in workers}
        self._keep(lambda name: name not in names and name.partition("/")[0] not in of_tasks)

    def forget_others(self, tasks: Collection[str]) -> int:
        """Forget the ends of workers of all other tasks; return how many there were."""
        return self._keep(lambda name: name.partition("/")[0] in tasks)

    def _keep(self, is_kept: Callable[[str], bool]) -> int:
        if all(map(is_kept, self._ends)):
            return 0
        with locked(FilePath(f"{self.path}.lock")):
            known = _ends_in(read_known(self.path))
            kept = {name: at for name, at in known.items() if is_kept(name)}
            self._write(kept)
        self._version = None
        self.update()
        return len(known) - len(kept)

    def _write(self, ends: Mapping[str, str]) -> None:
        write_whole(self.path, to_json({"root": str(self._root.path), "ends": ends}), durable=False)


def ends_to_look_at(root: Root, task: TaskDir, instances: Collection[str]) -> dict[str, str]:
    """Return the time of the end of each worker that has one; of an agent that was kept, that of its answer."""
    workers = read_task(task)[0].workers
    ends = {name: workers[name].ended_at for name in instances if name in workers}
    answered = {
        one.instance: str(one.question.asked_at)
        for one in (find_questions(root, task).questions if None in ends.values() else ())
        if one.question.idle
    }
    return {name: at for name, end in ends.items() if (at := end or answered.get(name)) is not None}


def nothing_to_look_at(instance: str) -> NotFound:
    """Return the error for a worker that has no end, and no answer, at which somebody could have looked."""
    return NotFound(f"{instance} has neither ended nor answered: there is nothing to look at")


def _ends_in(value: Mapping[str, object]) -> dict[str, str]:
    ends = value.get("ends")
    return {str(key): at for key, at in ends.items() if isinstance(at, str)} if isinstance(ends, dict) else {}

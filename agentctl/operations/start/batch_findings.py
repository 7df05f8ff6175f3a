"""What the workers of one batch have in common, found once: folders, environments, programs and free names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.treedir import tree_of
from agentctl.domain.names import first_free
from agentctl.errors import Argument, UsageError, WithArguments
from agentctl.operations.start.own_program import make_reachable
from agentctl.operations.start.requests import SpawnRequest, check_program
from agentctl.operations.where.task_config import usable_config
from agentctl.supervision.worker import environment


class Surroundings:
    """The findings of one call of spawn; another call may come from elsewhere, and find other programs."""

    def __init__(self, task: TaskDir) -> None:
        self._task, self._tree = task, tree_of(task)
        self._environs: dict[tuple[tuple[str, str], ...], dict[bytes, bytes]] = {}
        self._names: dict[tuple[bytes, ...], list[str]] = {}
        self._checked: set[tuple[object, ...]] = set()
        self._free: dict[str, int] = {}

    @cached_property
    def origin(self) -> str | None:
        """The random text of the task, for the specs of its workers."""
        return self._task.nonce() or None

    @cached_property
    def running_of_task(self) -> Mapping[str, Any]:
        """What task.yaml says of where workers run."""
        return usable_config(self._task).running

    @cached_property
    def running_of_root(self) -> Mapping[str, Any]:
        """What the root's own config.yaml says of it.

        Raises:
            Refused: Nobody has trusted it as it is.
        """
        settings = self._task.root.settings
        if not settings.exists() and not os.path.islink(settings):
            return {}
        from agentctl.operations.trust.root_settings import usable_settings  # Few roots have any.

        return usable_settings(self._task.root)

    def folder(self, request: SpawnRequest, *, keeps: bool) -> str:
        """Return the folder that a worker runs in.

        Args:
            keeps: Resolve its links now; otherwise they are followed when the worker starts.
        """
        try:
            folder = os.path.abspath(request.cwd or request.callers_cwd or os.getcwd())
            # The folder of an earlier run is resolved already: a link that was put into it since must not count.
            return os.path.realpath(folder) if keeps and not request.continues else folder
        except FileNotFoundError:
            raise UsageError(
                "the working folder was removed", hint=WithArguments("cd to one that exists, or give ", Argument("cwd"))
            ) from None

    def environ(self, request: SpawnRequest) -> dict[bytes, bytes]:
        """Return the environment of a worker."""
        extra = tuple(request.env.items())
        if extra not in self._environs:
            environ = environment.for_worker(os.environb, request.env)
            make_reachable(environ)
            self._environs[extra] = environ
        return dict(self._environs[extra])

    def names_in(self, environ: Mapping[bytes, bytes]) -> list[str]:
        """Return the sorted names of an environment's variables; in a batch, most workers have the same."""
        names = tuple(environ)
        if names not in self._names:
            self._names[names] = sorted(map(os.fsdecode, names))
        return self._names[names]

    def check_program(self, argv: Sequence[str], cwd: str, environ: dict[bytes, bytes]) -> None:
        """Refuse a missing program, as `requests.check_program` does."""
        asked = (*argv[:1], cwd, environ.get(b"PATH"))
        if asked not in self._checked:
            check_program(argv, cwd, environ)
            self._checked.add(asked)

    def is_subtask(self, name: str) -> bool:
        """Return whether a name is the id of a sub-task of the tree, and so could mean either."""
        other, above = self._task.sibling(name), self._tree
        is_other = other.path not in (self._task.path, above.path) and other.exists
        return is_other and tree_of(other).path == above.path

    def first_free(self, base: str) -> int:
        """Return a number after those in use, in few steps: the 5,000th name is as cheap as the 5th."""
        known = self._free.get(base)
        if known is not None:
            self._free[base] = known + 1
        else:
            self._free[base] = first_free(lambda number: self._task.worker(f"{base}-{number}").path.exists())
        return self._free[base]

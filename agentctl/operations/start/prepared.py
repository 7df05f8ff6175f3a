"""A worker whose folder is on disk, but which is not in the log yet: passed on by the steps of a start."""

from __future__ import annotations

from agentctl.adapters.taskdir import WorkerDir
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.start.requests import SpawnRequest
from agentctl.supervision.worker.environment import NO_ENVIRONMENT
from agentctl.supervision.worker.spec import WorkerSpec

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.starts import MadeWorktree


class Site(NamedTuple):
    """Where a worker is to run."""

    cwd: str
    environ: dict[bytes, bytes]
    #: Where it was to run, before it got a worktree of its own.
    origin: str
    warnings: tuple[str, ...] = ()
    worktree: MadeWorktree | None = None


class Prepared:
    """A request whose folder is on disk."""

    def __init__(self, request: SpawnRequest, worker: WorkerDir, spec: WorkerSpec, digest: str, site: Site) -> None:
        self.request, self.worker, self.spec, self.digest = request, worker, spec, digest
        self.environ, self.warnings, self.worktree = site.environ, site.warnings, site.worktree
        self.folder = site.origin
        #: The token of its environment in memory.
        self.environment_token = NO_ENVIRONMENT

"""Where a worker on a node is, and what is known of it there: as its stand-in has noted it; no engine is asked."""

from __future__ import annotations

from agentctl.adapters.files import read_quietly
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.projection import WorkerView
from agentctl.lean import Any
from agentctl.supervision.worker.placed import launch_of

#: What is noted of the engine's last answer.
_OF_ENGINE = ("state", "words", "reason")


def placement_of(worker: WorkerView, worker_dir: WorkerDir) -> dict[str, Any]:
    """Return {runner, launch, node, job, state, words, reason, problem, lateExit} of a worker that runs on a node.

    `state` is what is concluded of the engine's answers (`queued running ended dropped absent unknown`), `words` what
    it says itself; `problem` is why the engine has not taken the worker yet. What is not known is None.
    """
    launch = launch_of(worker_dir)
    handle = read_quietly(launch.handle) if launch is not None else {}
    said = handle.get("engine")
    engine = said if isinstance(said, dict) else {}
    return {
        "runner": worker.runner, "launch": launch.id if launch is not None else None, "node": worker.node,
        "job": _text(handle.get("job")), **{key: _text(engine.get(key)) for key in _OF_ENGINE},
        "problem": _text(handle.get("problem")), "lateExit": worker.late_exit,
    }  # fmt: skip


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

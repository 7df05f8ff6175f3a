"""Where a worker on a node is, and what is known of it there: by its stand-in, and by its engine's last answer.

No engine is asked here: one of those who follow workers does that for all, and leaves the answers in a file. A stand-in
whose worker runs quietly does not look at them, so what is shown is read in that file.
"""

from __future__ import annotations

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain.projection import WorkerView
from agentctl.lean import Any
from agentctl.supervision.worker.engine_answers import answer_for
from agentctl.supervision.worker.placed import launch_of

#: What is noted of the engine's last answer.
_OF_ENGINE = ("state", "words", "reason")


def placement_facts(worker: WorkerView, worker_dir: WorkerDir) -> dict[str, Any]:
    """Return {runner, launch, node, job, state, words, reason, problem, lateExit} of a worker that runs on a node.

    `state` is what is concluded of the engine's answer (`queued running ended dropped absent unknown`), `words` what
    it says itself; `problem` is why the engine has not taken the worker yet. What is not known is None.
    """
    launch = launch_of(worker_dir)
    handle = read_known(launch.handle) if launch is not None else {}
    return {
        "runner": worker.runner, "launch": launch.id if launch is not None else None, "node": worker.node,
        "job": _text(handle.get("job")), **_said_of(launch, handle),
        "problem": _text(handle.get("problem")), "lateExit": worker.late_exit,
    }  # fmt: skip


def _said_of(launch: LaunchDir | None, handle: dict[str, Any]) -> dict[str, str | None]:
    """Return {state, words, reason} of the engine's last answer; for a launch that is over, what was noted of it."""
    answer = answer_for(handle, launch.id) if launch is not None and not launch.verdict.exists() else None
    if answer is not None:
        return {
            "state": answer.seen.state.value,
            "words": answer.seen.words or None,
            "reason": answer.seen.reason or None,
        }
    noted = handle.get("engine")
    return {key: _text(noted.get(key)) if isinstance(noted, dict) else None for key in _OF_ENGINE}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

"""Where a worker on a node is, and what is known of it there: by its stand-in, and by its engine's last answer.

No engine is asked here: one of those who follow workers does that for all, and leaves the answers in a file. A stand-in
whose worker runs quietly does not look at them, so what is shown is read in that file.
"""

from __future__ import annotations

from agentctl.adapters.files import read_known
from agentctl.adapters.taskdir import LaunchDir, WorkerDir
from agentctl.domain.worker.projection import WorkerView
from agentctl.lean import TYPE_CHECKING, Any
from agentctl.supervision.worker.engine_answers import answer_for
from agentctl.supervision.worker.placed import launch_of

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.worker import NodePlacement


def placement_facts(worker: WorkerView, worker_dir: WorkerDir) -> NodePlacement:
    """Return where a worker is that runs on a node.

    `state` is what is concluded of the engine's answer (`queued running ended dropped absent unknown`), `words` what
    it says itself; `problem` is why the engine has not taken the worker yet. What is not known is None.
    """
    launch = launch_of(worker_dir)
    handle = read_known(launch.handle) if launch is not None else {}
    state, words, reason = _said_of(launch, handle)
    return {
        "runner": worker.runner, "launch": launch.id if launch is not None else None, "node": worker.node,
        "job": _text(handle.get("job")), "state": state, "words": words, "reason": reason,
        "problem": _text(handle.get("problem")), "lateExit": worker.late_exit,
    }  # fmt: skip


def _said_of(launch: LaunchDir | None, handle: dict[str, Any]) -> tuple[str | None, str | None, str | None]:
    """Return (state, words, reason) of the engine's last answer; for a launch that is over, what was noted of it."""
    answer = answer_for(handle, launch.id) if launch is not None and not launch.verdict.exists() else None
    if answer is not None:
        return answer.seen.state.value, answer.seen.words or None, answer.seen.reason or None
    noted = handle.get("engine")
    if not isinstance(noted, dict):
        return None, None, None
    return _text(noted.get("state")), _text(noted.get("words")), _text(noted.get("reason"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

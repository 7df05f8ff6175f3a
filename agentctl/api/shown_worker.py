"""What `Task.show` returns, key by key, as `show --json` prints it."""

# ruff: noqa: N815 - the keys are spelled as in the JSON

from __future__ import annotations

from typing import Any, NotRequired

from agentctl.domain.worker_row import WorkerRow


class ShownWorker(WorkerRow):
    """Everything that is known of a worker: its row, and what its files say; of a sub-agent that is only observed, the
    row alone.
    """

    taskId: str
    #: What it was to do, and with which limits.
    spec: NotRequired[dict[str, Any]]
    #: Its first process, and its shim.
    worker: NotRequired[dict[str, Any] | None]
    shim: NotRequired[dict[str, Any] | None]
    #: Who has asked for its end, and when.
    cancel: NotRequired[dict[str, Any] | None]
    #: How it ended.
    exit: NotRequired[dict[str, Any] | None]
    #: Of an agent, as its driver wrote it; `Task.result` has it with its text.
    result: NotRequired[dict[str, Any] | None]
    #: No program is run another way than its driver's any more.
    fallback: NotRequired[None]
    worktree: NotRequired[dict[str, Any] | None]
    #: Each with its `answer`.
    questions: NotRequired[list[dict[str, Any]]]
    #: The command that opens an agent's session by hand.
    openSession: NotRequired[str | None]
    #: Whether `retry` and `resume` take it; None until it has ended.
    furtherRuns: NotRequired[dict[str, bool] | None]
    #: Paths.
    folder: NotRequired[str]
    stdout: NotRequired[str]
    stderr: NotRequired[str]

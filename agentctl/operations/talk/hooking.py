"""`hook`: Claude Code and Codex tell of the start and the end of their own sub-agents; they are shown, and no more.

In a worker they are rows of its activity; of a session by hand they stand in `observed.jsonl` of the task. Whoever
calls waits for this: whatever is wrong, nothing is said and nothing fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

from agentctl.adapters.activitylog import ActivityWriter
from agentctl.adapters.clock import now_iso
from agentctl.adapters.taskdir import TaskDir
from agentctl.domain.activity.row import REPORTED, Phase, Row, RowType, encode_row
from agentctl.errors import AgentctlError
from agentctl.operations.where.calling import caller
from agentctl.operations.where.locating import find_task
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.spec import is_for_agent, order_of

_LONGEST = 1 << 20
_SHOWN = 2000
_PHASES = {"SubagentStart": Phase.START, "SubagentStop": Phase.END}
_TOLD = ("session_id", "agent_transcript_path", "cwd")


def take_hook(stream: BinaryIO) -> bool:
    """Read what a program tells, and note it where it belongs; tell whether it was noted."""
    try:
        notice = json.loads(stream.read(_LONGEST))
        return isinstance(notice, dict) and _note(notice)
    except (AgentctlError, OSError, ValueError, RecursionError):
        return False


def _note(notice: Mapping[str, Any]) -> bool:
    phase, agent_id = _PHASES.get(str(notice.get("hook_event_name"))), notice.get("agent_id")
    if phase is None or not isinstance(agent_id, str) or not agent_id:
        return False
    me = caller()
    if me is not None and me.worker.spec.exists():
        check_own(me.task)
        if me.worker.has_ended or is_for_agent(order_of(me.worker)):  # Its driver tells of its sub-agents itself.
            return False
        ActivityWriter(me.worker.activity).write(encode_row(_row(notice, phase, REPORTED + agent_id), now_iso()))
        return True
    task = _task_of(notice)
    check_own(task)
    ActivityWriter(task.observed).write(encode_row(_row(notice, phase, agent_id), now_iso()))
    return True


def _task_of(notice: Mapping[str, Any]) -> TaskDir:
    """Return the task of the folder that the session is in; a hook may be run in another one."""
    folder = notice.get("cwd")
    if isinstance(folder, str) and os.path.isdir(folder):
        os.chdir(folder)
    return find_task(None)


def _row(notice: Mapping[str, Any], phase: Phase, row_id: str) -> Row:
    last = notice.get("last_assistant_message")
    return Row(
        RowType.AGENT,
        row_id,
        phase,
        status="running" if phase is Phase.START else "completed",
        agent_type=str(notice.get("agent_type") or "") or None,
        text=last[:_SHOWN] if isinstance(last, str) and last else None,
        detail={key: notice[key] for key in _TOLD if isinstance(notice.get(key), str)},
    )

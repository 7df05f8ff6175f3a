"""`hook`: notes the start and end of sub-agents of Claude Code and Codex themselves, so that they can be shown.

Those of a worker become rows of its activity, those of a session by hand go to `observed.jsonl` of the task. The
calling program waits for this command: whatever is wrong, it prints nothing and does not fail.
"""

from __future__ import annotations

import json
import os
from typing import BinaryIO

from agentctl.adapters.activitylog import ActivityWriter
from agentctl.adapters.clock import now_iso
from agentctl.domain.activity.row import REPORTED, Phase, Row, RowType, encode_row
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.where.calling import caller
from agentctl.operations.where.locating import find_task
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.spec import is_for_agent, order_of

_LONGEST = 1 << 20
_MOST_TEXT = 2000
_PHASES = {"SubagentStart": Phase.START, "SubagentStop": Phase.END}


class HookNotice(NamedTuple):
    """What a program says of one of its sub-agents."""

    phase: Phase
    agent_id: str
    agent_type: str | None
    #: Its last message, cut.
    text: str | None
    #: The folder of the session; the hook may run in another one.
    cwd: str | None
    #: What is kept with the row as it is.
    detail: dict[str, str]


def take_hook(stream: BinaryIO) -> bool:
    """Read a notice and keep it where it belongs; return whether it was kept."""
    try:
        notice = _notice_in(stream.read(_LONGEST))
        return notice is not None and _keep(notice)
    except (AgentctlError, OSError, ValueError, RecursionError):
        return False


def _notice_in(data: bytes) -> HookNotice | None:
    given = json.loads(data)
    if not isinstance(given, dict):
        return None
    texts = {key: value for key, value in given.items() if isinstance(value, str)}
    phase = _PHASES.get(texts.get("hook_event_name", ""))
    if phase is None or not texts.get("agent_id"):
        return None
    return HookNotice(
        phase, texts["agent_id"], str(given.get("agent_type") or "") or None,
        text=texts.get("last_assistant_message", "")[:_MOST_TEXT] or None,
        cwd=texts.get("cwd"),
        detail={key: texts[key] for key in ("session_id", "agent_transcript_path", "cwd") if key in texts},
    )  # fmt: skip


def _keep(notice: HookNotice) -> bool:
    me = caller()
    if me is not None and me.worker.spec.exists():
        check_own(me.task)
        if me.worker.has_ended or is_for_agent(order_of(me.worker)):  # Its driver reports its sub-agents itself.
            return False
        ActivityWriter(me.worker.activity).write(encode_row(_row(notice, REPORTED + notice.agent_id), now_iso()))
        return True
    if notice.cwd is not None and os.path.isdir(notice.cwd):
        os.chdir(notice.cwd)
    task = find_task(None)
    check_own(task)
    ActivityWriter(task.observed).write(encode_row(_row(notice, notice.agent_id), now_iso()))
    return True


def _row(notice: HookNotice, row_id: str) -> Row:
    return Row(
        RowType.AGENT,
        row_id,
        notice.phase,
        status="running" if notice.phase is Phase.START else "completed",
        agent_type=notice.agent_type,
        text=notice.text,
        detail=notice.detail,
    )

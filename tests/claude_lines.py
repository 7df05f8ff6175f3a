"""Makes lines as Claude Code prints them, feeds them to a dialogue, and reads the resulting actions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agentctl.domain.activity.row import Row, RowType
from agentctl.domain.agent.permissions import parse_policy
from agentctl.drivers.claude import DRIVER
from agentctl.drivers.dialogue import Action, AgentOutcome, Dialogue, Finished, Note, Say, StopProgram
from agentctl.drivers.order import Order

RECORDINGS = Path(__file__).resolve().parent / "recordings" / "claude"
#: The lines here are those of a program that is started as its person's settings say: it calls no hook of ours.
ORDER = Order(driver="claude", program="claude", agent="general", prompt="do it", permissions=parse_policy("own"))
#: It has to ask us before each call that is not known to be harmless.
ASKING = ORDER._replace(permissions=[])


def recorded(name: str) -> list[dict[str, Any]]:
    """Return what the program printed in a recording."""
    values = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines()]
    return [value["msg"] if "dir" in value else value for value in values if value.get("dir") != "in"]


def sent(name: str, kind: str) -> list[dict[str, Any]]:
    """Return the messages of a type that were sent to the program in a recording."""
    values = [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_bytes().splitlines()]
    return [value["msg"] for value in values if value.get("dir") == "in" and value["msg"]["type"] == kind]


def feed(dialogue: Dialogue, values: Iterable[Any]) -> list[Action]:
    return [action for value in values for action in dialogue.received(json.dumps(value).encode())]


def started(order: Order = ORDER) -> Dialogue:
    dialogue = DRIVER.dialogue(order)
    dialogue.begin()
    return dialogue


def rows(actions: Iterable[Action], *kinds: RowType) -> list[Row]:
    return [action.row for action in actions if isinstance(action, Note) and (not kinds or action.row.type in kinds)]


def outcomes(actions: Iterable[Action]) -> list[AgentOutcome]:
    return [action.outcome for action in actions if isinstance(action, (Finished, StopProgram))]


def said(actions: Iterable[Action]) -> list[dict[str, Any]]:
    return [json.loads(action.data) for action in actions if isinstance(action, Say)]


def result(**more: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "done", **more}


def lifecycle(message: dict[str, Any], state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": message["uuid"], "state": state}


def system(subtype: str, **more: Any) -> dict[str, Any]:
    return {"type": "system", "subtype": subtype, **more}


def assistant(*blocks: dict[str, Any], message_id: str = "m", parent: str | None = None) -> dict[str, Any]:
    message = {"id": message_id, "model": "stub", "content": list(blocks)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}

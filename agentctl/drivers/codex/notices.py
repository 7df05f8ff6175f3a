"""Decides which of Codex's notifications are left out of the activity, and which become notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.drivers.values import list_in, object_in, text_in

#: Prefixes of names: whole families that are known and left out of the activity.
_QUIET_FAMILIES = (
    "account/",
    "app/",
    "command/exec/",
    "externalAgentConfig/",
    "fs/",
    "fuzzyFileSearch/",
    "hook/",
    "item/autoApprovalReview/",
    "item/commandExecution/",
    "item/fileChange/",
    "item/reasoning/",
    "mcpServer/event/",
    "mcpServer/oauthLogin/",
    "model/safetyBuffering/",
    "process/",
    "project/",
    "remoteControl/",
    "skills/",
    "thread/attachment/",
    "thread/environment/",
    "thread/goal/",
    "thread/project/",
    "thread/realtime/",
    "thread/section/",
    "windows",
)
_QUIET = frozenset(
    {
        "autoApprovalReview/strictReviewRequired",
        "item/agentMessage/delta",
        "item/plan/delta",
        "model/verification",
        "rawResponse/completed",
        "rawResponseItem/completed",
        "thread/archived",
        "thread/compacted",
        "thread/deleted",
        "thread/name/updated",
        "thread/prediction/updated",
        "thread/queue/changed",
        "thread/readState/changed",
        "thread/reverted",
        "thread/status/changed",
        "thread/unarchived",
        "turn/diff/updated",
        "turn/moderationMetadata",
    }
)
_BOXES = {"completed": "[x]", "inProgress": "[>]"}


def is_left_out(method: str) -> bool:
    """Return whether a notification is known and left out of the activity."""
    return method in _QUIET or method.startswith(_QUIET_FAMILIES)


def is_output(method: str) -> bool:
    """Return whether a notification carries a part of a model's answer."""
    return method.startswith(("item/agentMessage/", "item/reasoning/", "item/plan/"))


def notice(method: str, params: Mapping[str, Any]) -> str | None:
    """Return the text of a notification that may become a note, "" if there is nothing to note; None for any other."""
    match method:
        case (
            "warning" | "guardianWarning" | "modelProvider/authRecoveryStarted" | "modelProvider/authRecoveryCompleted"
        ):
            return text_in(params.get("message"))
        case "configWarning" | "deprecationNotice":
            return f"{text_in(params.get('summary'))} {text_in(params.get('details'))}".strip()
        case "model/rerouted":
            return f"the model is now {text_in(params.get('toModel'))} (was {text_in(params.get('fromModel'))})"
        case "mcpServer/startupStatus/updated":
            error = text_in(params.get("error"))
            return f"MCP server {text_in(params.get('name'))}: {error}" if error else ""
        case "turn/plan/updated":
            steps = [object_in(step) for step in list_in(params.get("plan"))]
            boxes = [(_BOXES.get(text_in(step.get("status")), "[ ]"), text_in(step.get("step"))) for step in steps]
            return "\n".join(f"{box} {text}" for box, text in boxes)
        case _:
            return None

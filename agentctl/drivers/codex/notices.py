"""The notifications of Codex that say nothing of what the agent does, and those that are worth a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.drivers.codex.items import as_dict, as_list, as_text

#: Beginnings of names: whole families that are known and left out of the activity.
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
        "thread/settings/updated",
        "thread/status/changed",
        "thread/unarchived",
        "turn/diff/updated",
        "turn/moderationMetadata",
    }
)
_BOXES = {"completed": "[x]", "inProgress": "[>]"}


def is_quiet(method: str) -> bool:
    """Tell whether a notification is known and has nothing for the activity."""
    return method in _QUIET or method.startswith(_QUIET_FAMILIES)


def is_output(method: str) -> bool:
    """Tell whether a notification brings something of a model's answer."""
    return method.startswith(("item/agentMessage/", "item/reasoning/", "item/plan/"))


def notice(method: str, params: Mapping[str, Any]) -> str | None:
    """Return the line of a warning or the like; None where a notification is none."""
    match method:
        case (
            "warning" | "guardianWarning" | "modelProvider/authRecoveryStarted" | "modelProvider/authRecoveryCompleted"
        ):
            return as_text(params.get("message"))
        case "configWarning" | "deprecationNotice":
            return f"{as_text(params.get('summary'))} {as_text(params.get('details'))}".strip()
        case "model/rerouted":
            return f"the model is now {as_text(params.get('toModel'))} (was {as_text(params.get('fromModel'))})"
        case "mcpServer/startupStatus/updated":
            error = as_text(params.get("error"))
            return f"MCP server {as_text(params.get('name'))}: {error}" if error else ""
        case "turn/plan/updated":
            steps = [as_dict(step) for step in as_list(params.get("plan"))]
            boxes = [(_BOXES.get(as_text(step.get("status")), "[ ]"), as_text(step.get("step"))) for step in steps]
            return "\n".join(f"{box} {text}" for box, text in boxes)
        case _:
            return None

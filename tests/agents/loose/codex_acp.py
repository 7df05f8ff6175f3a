"""codex-acp as loose as a person can make it: as Codex, but without a project's files, where it is not started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.agents.lab import Lab
from tests.agents.loose import Steps, codex
from tests.agents.loose.codex import GUARDS, guarded

__all__ = ["GUARDS", "KINDS", "guarded", "loosen", "steps", "tool"]
#: It ends its turn, and so the agent, while a sub-agent works.
KINDS = tuple(kind for kind in codex.KINDS if kind != "sub-agent")
#: What its model says where a command is to leave the sandbox: only then is it asked about.
_LEAVES = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
_TOOLS = {"write": "Edit", "edit": "Edit"}


def loosen(lab: Lab) -> Mapping[str, str | None]:
    """Write it all."""
    codex.loosen_person(lab, trusted=(lab.work, lab.folder))
    return {}


def steps(lab: Lab, kind: str, target: Path) -> Steps:
    """Return the calls that make the file."""
    match kind:
        case "shell":
            return [[["out", f"touch {target}"]]]
        case "background":
            ((call,),) = codex.steps(lab, kind, target)
            return [[[call[0], {**call[1], **_LEAVES}]]]
    return codex.steps(lab, kind, target)


def tool(kind: str) -> str:
    """Return the tool of such a call."""
    return _TOOLS.get(kind) or codex.tool(kind)

"""Qwen Code, as loose as a person can make it: rules, modes, hooks, trusted servers and folders; but not `guarded`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agents.lab import Lab
from tests.support import WORKERS

#: A skill is text; it has no sub-agents where somebody is asked.
KINDS = ("shell", "background", "write", "edit", "MCP", "after a change of mode")
#: In plan mode it runs no command that changes anything.
REFUSED = ("after a change of mode",)
#: Hooks that guard are switched off together with those that allow, where somebody is asked (docs/agents.md).
GUARDS = ("rule for commands", "rule for files")
_TOOLS = {"write": "write_file", "edit": "edit", "MCP": "mcp__w__put"}
_ALLOWED = ["Bash", "Edit", "Write", "WebFetch", "Skill", "Agent", "mcp__w", "mcp__w__put", "mcp__*"]


def loosen(lab: Lab) -> Mapping[str, str | None]:
    """Write the settings, and return the variables that go with them."""
    home = lab.folder / "qwen"
    settings = json.loads((home / "settings.json").read_text(encoding="utf-8"))
    server = {"command": sys.executable, "args": [str(WORKERS / "writes_by_mcp.py")], "trust": True}
    loose = {
        "permissions": {"allow": _ALLOWED, "deny": ["Bash(*guarded*)", f"Write(/{lab.folder}/outside/guarded)"]},
        "tools": {"approvalMode": "yolo", "autoAccept": True, "allowed": ["run_shell_command", "write_file", "edit"]},
        "hooks": {"PreToolUse": _allowing("PreToolUse"), "PermissionRequest": _allowing("PermissionRequest")},
    }
    theirs = {**settings, **loose, "mcpServers": {"w": server}}
    project = {**loose, "permissions": {"allow": _ALLOWED}}
    files = {
        home / "settings.json": theirs,
        home / "trustedFolders.json": {str(lab.work.parent): "TRUST_FOLDER", str(lab.work): "TRUST_FOLDER"},
        lab.work / ".qwen" / "settings.json": project,
        lab.work.parent / ".qwen" / "settings.json": project,
    }
    for file, value in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value), encoding="utf-8")
    return {"QWEN_APPROVAL_MODE": "yolo"}


def _allowing(event: str) -> list[dict[str, Any]]:
    says: dict[str, Any] = {"hookEventName": event}
    if event == "PreToolUse":
        says |= {"permissionDecision": "allow", "permissionDecisionReason": "mine"}
    else:
        says |= {"decision": {"behavior": "allow"}}
    told = json.dumps({"hookSpecificOutput": says})
    return [{"matcher": "*", "hooks": [{"type": "command", "command": f"printf %s '{told}'", "timeout": 10_000}]}]


def steps(lab: Lab, kind: str, target: Path) -> list[list[list[object]]]:
    """Return the calls by which its model makes a file."""
    path = str(target)
    shell = {"command": f"touch {path}", "description": "make a file", "is_background": kind == "background"}
    of_shell: list[object] = ["tool:run_shell_command", shell]
    calls: dict[str, list[list[list[object]]]] = {
        "write": [[["tool:write_file", {"file_path": path, "content": "written\n"}]]],
        "edit": [[["tool:edit", {"file_path": path, "old_string": "", "new_string": "written\n"}]]],
        "MCP": [[["tool:mcp__w__put", {"path": path}]]],
        "after a change of mode": [[["tool:enter_plan_mode", {}]], [of_shell]],
    }
    return calls.get(kind, [[of_shell]])


def tool(kind: str) -> str:
    """Return the tool of such a call, by the name that rules use."""
    return _TOOLS.get(kind, "run_shell_command")


def guarded(lab: Lab, name: str, target: Path) -> list[list[list[object]]]:
    """Return the steps that one of the person's own rules forbids."""
    return steps(lab, "shell" if name == "rule for commands" else "write", target)

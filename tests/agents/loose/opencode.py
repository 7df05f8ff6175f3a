"""opencode, as loose as a person can make it, also for an agent of our name; but nothing touches what is `guarded`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.agents.lab import Lab
from tests.support import WORKERS

#: It has no background commands, and no mode that its model could choose; a skill is a text. Where somebody is asked it
#: has no sub-agents, since nobody hears of their requests.
KINDS = ("shell", "write", "edit", "MCP")
GUARDS = ("rule for commands", "rule for files")
_TOOLS = {"shell": "bash", "write": "edit", "edit": "edit", "MCP": "w_put"}
_ALL = ("*", "bash", "edit", "read", "webfetch", "task", "w_put", "external_directory")
_GUARDED = {"*": "allow", "*guarded*": "deny"}
_AGENT = "---\nmode: primary\npermission:\n  bash: {'*': allow, 'touch *': allow}\n  edit: {'*': allow}\n---\nDo it.\n"


def loosen(lab: Lab) -> Mapping[str, str | None]:
    """Write the settings, and return the variables that go with them."""
    permission = {**dict.fromkeys(_ALL, "allow"), "bash": _GUARDED, "edit": _GUARDED}
    agents = {"agentctl": {"mode": "primary", "permission": {"bash": {"touch *": "allow"}, "edit": {"*": "allow"}}}}
    server = {"type": "local", "command": [sys.executable, str(WORKERS / "writes_by_mcp.py")], "enabled": True}
    config = Path(os.environ["HOME"]) / ".config" / "opencode"
    theirs, more = {"permission": permission, "agent": agents, "mcp": {"w": server}}, lab.folder / "more"
    project = {"permission": dict.fromkeys(_ALL, "allow"), "agent": agents}
    files = {
        config / "opencode.json": json.dumps(theirs),
        config / "agent" / "agentctl.md": _AGENT,
        more / "agent" / "agentctl.md": _AGENT,
        lab.work / "opencode.json": json.dumps(project),
        lab.work.parent / "opencode.json": json.dumps(project),
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return {"OPENCODE_CONFIG_DIR": str(more), "OPENCODE_PERMISSION": json.dumps({"webfetch": "allow"})}


def steps(lab: Lab, kind: str, target: Path) -> list[list[list[object]]]:
    """Return the calls by which its model makes a file."""
    path = str(target)
    calls: dict[str, list[object]] = {
        "shell": ["tool:bash", {"command": f"touch {path}", "description": "make a file"}],
        "write": ["tool:write", {"filePath": path, "content": "written\n"}],
        "edit": ["tool:edit", {"filePath": path, "oldString": "", "newString": "written\n"}],
        "MCP": ["tool:w_put", {"path": path}],
    }
    return [[calls[kind]]]


def tool(kind: str) -> str:
    """Return the tool of such a call, by the name that rules use."""
    return _TOOLS[kind]


def guarded(lab: Lab, name: str, target: Path) -> list[list[list[object]]]:
    """Return the steps that one of the person's own rules forbids."""
    return steps(lab, "shell" if name == "rule for commands" else "write", target)

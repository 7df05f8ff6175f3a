"""Claude Code, as loose as a person can make it for themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.agents.lab import Lab

KINDS = ("shell", "background", "write", "edit", "MCP", "skill", "sub-agent", "after a change of mode")
GUARDS = ("rule", "hook", "hook of a tool")
_TOOLS = {"write": "Write", "edit": "Edit", "MCP": "mcp__loose__write_file", "skill": "Skill"}
_ALLOWED = ["Bash", "Write", "Edit", "NotebookEdit", "Read", "WebFetch", "Skill", "Agent", "mcp__loose"]
#: Files whose names begin so are denied by the person, each in another way.
_GUARDED = {"rule": "ruled-", "hook": "hooked-", "hook of a tool": "written-"}
#: A file in the folder of the test that is there once the hook of the plugin has run.
PLUGIN_RAN = "plugin-ran"
_SAYS_ALLOW: dict[str, dict[str, Any]] = {
    "PreToolUse": {"permissionDecision": "allow", "permissionDecisionReason": "mine"},
    "PermissionRequest": {"decision": {"behavior": "allow"}},
}
#: Denies what has the word in it, and says nothing of all else.
_GUARD = """\
#!/bin/sh
if grep -q {word}; then
    echo '{{"hookSpecificOutput": {{"hookEventName": "PreToolUse", "permissionDecision": "deny"}}}}'
fi
"""
_SKILL = """\
---
name: loose
description: Makes a file.
allowed-tools: Bash, Write
---
!`touch {target}`
"""
_SUB_AGENT = """\
---
name: loose
description: Does what it likes.
permissionMode: bypassPermissions
---
You do what you like.
"""
#: An MCP server with a tool that writes.
_SERVER = r"""
import json, sys
TOOL = {"name": "write_file", "description": "Writes a file.", "inputSchema": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}
for line in sys.stdin:
    request = json.loads(line)
    method, params = request.get("method"), request.get("params") or {}
    if method == "initialize":
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "loose", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        open(params["arguments"]["path"], "w").close()
        result = {"content": [{"type": "text", "text": "written"}]}
    else:
        result = {}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def loosen(lab: Lab) -> Mapping[str, str | None]:
    """Write settings that allow all in every way: mode, rules, hooks, servers, a skill, a sub-agent, a plugin."""
    home = lab.folder / "claude"
    settings: dict[str, Any] = {
        "permissions": {
            "defaultMode": "bypassPermissions",
            "allow": _ALLOWED,
            "deny": [f"Bash(touch *{_GUARDED['rule']}*)"],
            "additionalDirectories": [str(lab.folder)],
        },
        "hooks": _hooks(lab),
        "skipDangerousModePermissionPrompt": True,
        **_plugin(lab),
    }
    server = {"type": "stdio", "command": "python3", "args": [str(_written(lab.folder / "server.py", _SERVER))]}
    _written(home / "settings.json", json.dumps(settings))
    _written(home / ".claude.json", json.dumps({"mcpServers": {"loose": server}, **_trusting(lab)}))
    _written(home / "agents" / "loose.md", _SUB_AGENT)
    if not (home / "skills").exists():
        _written(home / "skills" / "loose" / "SKILL.md", _SKILL.format(target=lab.folder / "of-no-test"))
    for folder in (lab.work, lab.work.parent):
        own = {"permissions": settings["permissions"], "hooks": {"PreToolUse": settings["hooks"]["PreToolUse"]}}
        _written(folder / ".claude" / "settings.json", json.dumps(own))
    # As root it does not work in this mode otherwise.
    return {"IS_SANDBOX": "1"}


def _plugin(lab: Lab) -> dict[str, Any]:
    """Write a plugin as `claude plugin install` does, whose hook allows all; return the settings that enable it."""
    market, home = lab.folder / "market", lab.folder / "claude" / "plugins"
    installed = home / "cache" / "loose" / "loose" / "1.0.0"
    source = {"source": "directory", "path": str(market)}
    times = dict.fromkeys(("installedAt", "lastUpdated"), "2026-11-01T00:00:00.000Z")
    allows = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **_SAYS_ALLOW["PreToolUse"]}}
    about = {"name": "loose", "description": "Allows all.", "version": "1.0.0"}
    listed = {"name": "loose", "owner": {"name": "a person"}, "plugins": [{"name": "loose", "source": "./loose"}]}
    here = {"scope": "user", "installPath": str(installed), "version": "1.0.0", **times}
    known = {"source": source, "installLocation": str(market), "lastUpdated": times["lastUpdated"]}
    for folder in (market / "loose", installed):
        _written(folder / ".claude-plugin" / "plugin.json", json.dumps(about))
        hook = _hook(f"touch {lab.folder / PLUGIN_RAN}; echo {_quoted(allows)}", "*")
        _written(folder / "hooks" / "hooks.json", json.dumps({"hooks": {"PreToolUse": [hook]}}))
    _written(market / ".claude-plugin" / "marketplace.json", json.dumps(listed))
    _written(home / "installed_plugins.json", json.dumps({"version": 2, "plugins": {"loose@loose": [here]}}))
    _written(home / "known_marketplaces.json", json.dumps({"loose": known}))
    return {"enabledPlugins": {"loose@loose": True}, "extraKnownMarketplaces": {"loose": {"source": source}}}


def _hooks(lab: Lab) -> dict[str, Any]:
    hooks: dict[str, Any] = {
        event: [_hook("echo " + _quoted({"hookSpecificOutput": {"hookEventName": event, **said}}))]
        for event, said in _SAYS_ALLOW.items()
    }
    for guard, matcher in (("hook", None), ("hook of a tool", "Write")):
        name = guard.replace(" ", "-")
        script = _written(lab.folder / f"{name}.sh", _GUARD.format(word=_GUARDED[guard]))
        hooks["PreToolUse"].append(_hook(f"sh {script}", matcher))
    return hooks


def _hook(command: str, matcher: str | None = None) -> dict[str, Any]:
    return {**({"matcher": matcher} if matcher else {}), "hooks": [{"type": "command", "command": command}]}


def _quoted(value: Any) -> str:
    return f"'{json.dumps(value)}'"


def _trusting(lab: Lab) -> dict[str, Any]:
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": _ALLOWED}
    return {"projects": {str(folder): trusted for folder in (lab.work, lab.work.parent)}}


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# -- calls -------------------------------------------------------------------------------------------------------------


def tool(kind: str) -> str:
    """Return the tool of a kind of call, as rules name it."""
    return _TOOLS.get(kind, "Bash")


def steps(lab: Lab, kind: str, target: Path) -> list[list[list[Any]]]:
    """Return the calls by which a model makes a file."""
    return [[[f"tool:{name}", arguments]] for name, arguments in _calls(lab, kind, target)]


def _calls(lab: Lab, kind: str, target: Path) -> Sequence[tuple[str, dict[str, Any]]]:
    shell = ("Bash", {"command": f"touch {target}", "description": "A command"})
    match kind:
        case "background":
            return [("Bash", {**shell[1], "run_in_background": True})]
        case "write":
            return [("Write", {"file_path": str(target), "content": "written\n"})]
        case "edit":  # An empty text to be replaced makes a file.
            return [("Edit", {"file_path": str(target), "old_string": "", "new_string": "edited\n"})]
        case "MCP":
            return [("ToolSearch", {"query": "select:mcp__loose__write_file"}), (_TOOLS["MCP"], {"path": str(target)})]
        case "skill":
            _written(lab.folder / "claude" / "skills" / "loose" / "SKILL.md", _SKILL.format(target=target))
            return [("Skill", {"skill": "loose"})]
        case "sub-agent":
            _written(lab.work / "calls.json", json.dumps([shell]))
            order = {"description": "A sub-agent", "prompt": "SCENARIO:calls", "subagent_type": "loose"}
            return [("Agent", order)]
        case "after a change of mode":
            return [("EnterPlanMode", {}), shell]
        case _:
            return [shell]


def guarded(lab: Lab, guard: str, target: Path) -> list[list[list[Any]]]:
    """Return a call that the person's own denial forbids."""
    kind = "write" if guard == "hook of a tool" else "shell"
    return steps(lab, kind, target.with_name(_GUARDED[guard] + target.name))

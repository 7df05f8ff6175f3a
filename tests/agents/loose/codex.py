"""Codex as loose as a person can make it: rules, hooks, approved tools, full access, a project and a parent trusted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.agents.install import installed
from tests.agents.lab import Lab
from tests.agents.loose import Steps
from tests.agents.loose.tool_server import write_server

#: A skill is text, and its model has no means to change the mode; plugins are switched off in its own home.
KINDS = ("shell", "background", "write", "edit", "MCP", "sub-agent")
#: Without a question it ends before what it has put into the background has made its file.
OWN_KINDS = tuple(kind for kind in KINDS if kind != "background")
#: A rule that forbids, one that has something asked, and a hook that says no.
GUARDS = ("rule", "hook")
#: Found while it is known where the programs are: a test has a home of its own.
_PROGRAM = installed().get("codex")
_TOOLS = {"write": "apply_patch", "edit": "apply_patch", "MCP": "mcp__w__write"}
_ALLOWED = "".join(f'prefix_rule(pattern=["{word}"], decision="allow")\n' for word in ("touch", "sh", "apply_patch"))
_RULES = f'{_ALLOWED}prefix_rule(pattern=["touch", "-m"], decision="forbidden")\n'
_HOOKED = "hooked"
_ALLOWS = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
_SETTINGS = """
approval_policy = "on-request"
approvals_reviewer = "user"
sandbox_mode = "danger-full-access"
default_permissions = ":danger-full-access"
notify = ["sh", "-c", "true"]
[mcp_servers.w]
command = {python}
args = [{server}]
required = true
default_tools_approval_mode = "approve"
[mcp_servers.w.tools.write]
approval_mode = "approve"
"""


def loosen(lab: Lab) -> Mapping[str, str | None]:
    """Write it all; the program itself says by which words its hooks are trusted."""
    project = lab.work / ".codex"
    for folder in (project, lab.folder / ".codex"):
        _written(folder / "rules" / "default.rules", _ALLOWED)
        _written(folder / "config.toml", 'approval_policy = "never"\n')
    subprocess.run(["git", "init", "--quiet", str(lab.folder)], check=True)
    loosen_person(lab, trusted=(lab.work, lab.folder))
    return {}


def loosen_person(lab: Lab, *, trusted: tuple[Path, ...]) -> None:
    """Write what is the person's own."""
    home = lab.folder / "codex"
    config = home / "config.toml"
    text = config.read_text(encoding="utf-8")
    first, tables = text[: text.index("[")], text[text.index("[") :]
    server = write_server(lab.folder / "server.py")
    own = _SETTINGS.format(python=json.dumps(sys.executable), server=json.dumps(str(server)))
    projects = "".join(f'[projects.{json.dumps(str(path))}]\ntrust_level = "trusted"\n' for path in trusted)
    _written(home / "rules" / "default.rules", _RULES)
    _written(home / "hooks.json", json.dumps({"hooks": dict(_hooks(lab))}))
    _written(config, f"{first}{own}{tables}{projects}")
    states = "".join(
        f"[hooks.state.{json.dumps(hook['key'])}]\ntrusted_hash = {json.dumps(hook['currentHash'])}\n"
        for hook in _listed_hooks(lab)
    )
    _written(config, f"{first}{own}{tables}{projects}{states}")


def steps(lab: Lab, kind: str, target: Path) -> Steps:
    """Return the calls that make the file."""
    match kind:
        case "shell":
            return [[["shell", f"touch {target}"]]]
        case "background":
            return [[["tool:exec_command", {"cmd": f"sh -c 'sleep 0.5; touch {target}'", "yield_time_ms": 250}]]]
        case "write":
            return [[["shell", _patch(f"*** Add File: {target}\n+x")]]]
        case "edit":
            source = _written(lab.folder / "source", "old\n")
            return [[["shell", _patch(f"*** Update File: {source}\n*** Move to: {target}\n@@\n-old\n+new")]]]
        case "MCP":
            return [[["tool:mcp__w/write", {"path": str(target)}]]]
        case _:
            inner = lab.work / "calls.json"
            inner.write_text(json.dumps([["exec_command", {"cmd": f"touch {target}"}]]), encoding="utf-8")
            return [[["agent", "Report back. SCENARIO:calls"]]]


def tool(kind: str) -> str:
    """Return the tool of such a call."""
    return _TOOLS.get(kind, "shell")


def guarded(lab: Lab, name: str, target: Path) -> Steps:
    """Return the calls that the person's own denial forbids, though their rules allow it."""
    return [[["shell", f"touch -m {target}" if name == "rule" else f"touch {target} {target.with_name(_HOOKED)}"]]]


def _hooks(lab: Lab) -> Iterator[tuple[str, Any]]:
    """Yield a hook that allows whatever is asked, and one that denies what has a word in it."""
    answer = json.dumps({"hookSpecificOutput": _ALLOWS})
    yield "PermissionRequest", [{"hooks": [{"type": "command", "command": f"echo '{answer}'"}]}]
    guard = f"if grep -q {_HOOKED}; then echo guarded >&2; exit 2; fi"
    yield "PreToolUse", [{"hooks": [{"type": "command", "command": guard}]}]


def _listed_hooks(lab: Lab) -> list[dict[str, Any]]:
    client = {"name": "a-test", "title": "a test", "version": "1"}
    calls: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": client, "capabilities": {"experimentalApi": True}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [str(lab.work)]}},
    ]
    environ = {**os.environ, "CODEX_HOME": str(lab.folder / "codex")}
    with subprocess.Popen(
        [str(_PROGRAM), "app-server"], env=environ, cwd=lab.work, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(f"{json.dumps(call)}\n" for call in calls))
        server.stdin.flush()
        answer = next(told for line in server.stdout if (told := json.loads(line)).get("id") == 2)
        server.stdin.close()
    (listed,) = answer["result"]["data"]
    hooks: list[dict[str, Any]] = listed["hooks"]
    assert len(hooks) == 2, listed
    return hooks


def _patch(change: str) -> str:
    return f"apply_patch <<'E'\n*** Begin Patch\n{change}\n*** End Patch\nE\n"


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path

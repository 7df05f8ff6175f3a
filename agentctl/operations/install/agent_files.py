"""Which files teach each agent program to delegate, and what goes into them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agentctl
from agentctl.adapters.personal import home_folder
from agentctl.domain.agent.own_tools import SERVER
from agentctl.errors import Argument, AtTerminal, UsageError, WithArguments
from agentctl.operations.install.edits import BlockEdit, Edit, FileEdit, JsonEdit
from agentctl.supervision.worker.environment import ROOT_VARIABLE, TASK_VARIABLE

CLIENTS = ("claude", "codex", "gemini", "opencode")
GUIDANCE = Path(agentctl.__file__).resolve().parent / "guidance" / "delegating.md"
#: A call lasts as long as a sub-agent works; a server may start slowly on a busy machine.
_CALL_S, _START_S = 86_400, 60
#: Codex passes hardly any variables to a server, but the sub-agents need their homes, keys and proxies.
_VARIABLES = (
    ROOT_VARIABLE, TASK_VARIABLE, "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", "CODEX_API_KEY", "CODEX_HOME", "GEMINI_API_KEY", "GOOGLE_API_KEY",
    "HTTPS_PROXY", "HTTP_PROXY", "NODE_EXTRA_CA_CERTS", "NO_PROXY", "OPENAI_API_KEY", "OPENAI_BASE_URL",
    "SSL_CERT_FILE", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
)  # fmt: skip
#: Gemini hides variables with such names from a server, unless the server's entry asks for them. One that is not set
#: arrives empty. Agent programs treat an empty key as not set, but they would use an empty path: so only keys are here.
_SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY")
#: Codex asks its model one second after its start, with the tools of the servers that are up by then, but it waits for
#: a required server. Without that one it does not start: so this is only for the user's own files, which name a program
#: that exists, and not for a project's, which other people use too.
_REQUIRED = (
    "# Codex waits for this server and does not start without it; to get rid of it, remove this block.",
    "required = true",
)
#: Commands that change nothing: a model may use them without asking.
_HARMLESS = ("agents", "interact list", "list", "result", "show", "tasks", "tree", "wait", "wait-all", "wait-any")
_DESCRIPTION = (
    "Start sub-agents that work in parallel, wait for them in the background, answer their questions and read their"
    " results. Use it for work that splits into independent parts, or takes a long time."
)
_HASH, _HTML = ("# ", ""), ("<!-- ", " -->")


def edits_for(client: str, *, project: str | None, hooks: bool, environ: Mapping[str, str]) -> list[Edit]:
    """Return the changes for a program: to the user's own files, or to those of the project in the folder `project`."""
    if client not in CLIENTS:
        raise UsageError(f"unknown agent program {client!r}", hint=f"known: {', '.join(CLIENTS)}")
    if hooks and client != "claude":
        raise UsageError(
            WithArguments(Argument("hooks"), " is only for claude"),
            hint=AtTerminal(f"for {client}, add `agentctl hook` to its own settings"),
        )
    made: list[Edit] = _MAKERS[client](_Places(project, environ))
    return [*made, _hooks(_Places(project, environ))] if hooks else made


class _Places:
    """Where a program's files are."""

    def __init__(self, project: str | None, environ: Mapping[str, str]) -> None:
        self.project = project
        self._environ = environ
        self.home = home_folder(environ)

    def at(self, in_project: str, in_home: str, variable: str | None = None) -> str:
        """Return a path in the project, else in the home folder; there `variable` can replace the first folder."""
        if self.project is not None:
            return os.path.join(self.project, in_project)
        moved = self._environ.get(variable) if variable else None
        if moved:
            return os.path.join(moved, in_home.partition("/")[2] or in_home)
        return os.path.join(self.home, in_home)

    def command(self, dialect: str, call_s: float | None) -> list[str]:
        """Return the server's command line. In a project's files it must work for other people too."""
        own = ["agentctl"] if self.project is not None else [sys.executable, "-P", "-m", "agentctl"]
        limit = [] if call_s is None else [f"--call-seconds={call_s:g}"]
        return [*own, "mcp", f"--tools={dialect}", *limit]


def _claude(places: _Places) -> list[Edit]:
    command = places.command("codex", 0)
    server: dict[str, Any] = {"type": "stdio", "command": command[0], "args": command[1:], "timeout": _CALL_S * 1000}
    # Else its model sees only the tools' names, and has to search for what they do, a round later (2.1.330).
    server["alwaysLoad"] = True
    allowed = [f"mcp__{SERVER}", *(f"Bash(agentctl {verb}:*)" for verb in _HARMLESS)]
    settings = _claude_settings(places)
    skill = places.at(".claude/skills/agentctl/SKILL.md", ".claude/skills/agentctl/SKILL.md", "CLAUDE_CONFIG_DIR")
    head = f"---\nname: agentctl\ndescription: {_DESCRIPTION}\n---\n\n"
    return [
        JsonEdit(
            places.at(".mcp.json", ".claude.json", "CLAUDE_CONFIG_DIR"), members=((("mcpServers", SERVER), server),)
        ),
        JsonEdit(settings, items=tuple((("permissions", "allow"), rule) for rule in allowed)),
        FileEdit(skill, head + guidance()),
    ]


def _claude_settings(places: _Places) -> str:
    return places.at(".claude/settings.json", ".claude/settings.json", "CLAUDE_CONFIG_DIR")


def _hooks(places: _Places) -> Edit:
    own = "agentctl hook" if places.project is not None else f"{sys.executable} -P -m agentctl hook"
    entry = {"hooks": [{"type": "command", "command": own, "timeout": 10}]}
    names = ("SubagentStart", "SubagentStop")
    return JsonEdit(_claude_settings(places), items=tuple((("hooks", name), entry) for name in names))


def _codex(places: _Places) -> list[Edit]:
    command = places.command("codex", 0)
    lines = [
        f"[mcp_servers.{SERVER}]",
        f"command = {_toml(command[0])}",
        f"args = [{', '.join(_toml(word) for word in command[1:])}]",
        f"env_vars = [{', '.join(_toml(name) for name in _VARIABLES)}]",
        f"startup_timeout_sec = {_START_S}",
        f"tool_timeout_sec = {_CALL_S}",
        "supports_parallel_tool_calls = true",
        'default_tools_approval_mode = "approve"',
        *([] if places.project is not None else _REQUIRED),
    ]
    return [
        BlockEdit(
            places.at(".codex/config.toml", ".codex/config.toml", "CODEX_HOME"),
            "\n".join(lines), _HASH, clash=f"[mcp_servers.{SERVER}]",
        ),
        BlockEdit(places.at("AGENTS.md", ".codex/AGENTS.md", "CODEX_HOME"), guidance(), _HTML),
    ]  # fmt: skip


def _toml(text: str) -> str:
    import json

    return json.dumps(text)  # A basic string of TOML has the same escapes.


def _gemini(places: _Places) -> list[Edit]:
    command = places.command("codex", 0)
    server: dict[str, Any] = {"command": command[0], "args": command[1:], "timeout": _CALL_S * 1000, "trust": True}
    server["env"] = {name: f"${name}" for name in _SECRETS}
    settings = places.at(".gemini/settings.json", ".gemini/settings.json")
    return [
        JsonEdit(settings, members=((("mcpServers", SERVER), server),)),
        BlockEdit(places.at("GEMINI.md", ".gemini/GEMINI.md"), guidance(), _HTML),
    ]


def _opencode(places: _Places) -> list[Edit]:
    # Its time limit for a call is not known: calls are kept short.
    server = {"type": "local", "command": places.command("codex", None), "enabled": True, "timeout": _START_S * 1000}
    folder = ".config/opencode"
    config = places.at("opencode.json", f"{folder}/opencode.json")
    return [
        JsonEdit(config, members=((("mcp", SERVER), server),), beside=f"{config}c"),
        BlockEdit(places.at("AGENTS.md", f"{folder}/AGENTS.md"), guidance(), _HTML),
    ]


_MAKERS = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}


def guidance() -> str:
    """Return the text that teaches a parent to delegate."""
    return GUIDANCE.read_text(encoding="utf-8")

"""How Claude Code is started: its command line, its environment, and the tools that it may use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import takewhile

from agentctl.domain.agent.permissions import SHELLS
from agentctl.domain.text.containment import lies_in
from agentctl.drivers.claude.rows import AGENT_TOOLS
from agentctl.drivers.order import ALLOWING, BY_OWN_SETTINGS, Order

#: The version that was tried, and how the program is installed.
TESTED, INSTALL = "2.1.332", "npm install -g @anthropic-ai/claude-code"
HONOURS = frozenset(
    {"model", "effort", "tools", "readOnly", "maxTurns", "maxBudgetUsd", "permissions"}
    | {"resume", "keep", "mcpServers", "outputSchema", "ownUnderRules"}
)
#: All tools that a read-only agent gets. No `Agent`: its `isolation: worktree` makes a folder and a branch. No
#: `Skill`: a skill may run commands.
READING_TOOLS = ("Read", "Glob", "Grep", "WebFetch", "WebSearch", "AskUserQuestion")
#: The mode in which it asks for permission, and those in which it may be: its model can enter plan mode by itself, in
#: which it is called no less.
MODE, MODES = "default", frozenset({"default", "plan"})
#: In plan mode a model would judge the commands. A person's own default mode may be one that asks nobody.
PINNED = {"disableAutoMode": "disable"}
PINNED_PERMISSIONS = {"disableBypassPermissionsMode": "disable"}
#: Tools that a rule can name in any case. (`Edit` is left out: its denial would be one of `Write` as well.)
_BY_LOWER = {
    name.lower(): name
    for name in ("Agent", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "WebFetch", "WebSearch", "Workflow", "Write")
}
_TOOL = re.compile(r"mcp__[\w-]+?(?:__(?:[\w-]+|\*))?", re.ASCII)
_SPECIAL = re.compile(r"[\\*?\[\]{}()!# ]")
_SERVER_KEYS = frozenset({"type", "command", "args", "env", "url", "headers", "timeout", "alwaysLoad"})
#: Variables that a Claude Code sets for its children: the agent must not take itself for a part of another one.
_INHERITED = frozenset(
    {
        "CLAUDECODE",
        "CLAUDE_PID",
        "CLAUDE_EFFORT",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_SESSION_ATTENDED",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_CODE_MESSAGING_TOKEN",
        "CLAUDE_CODE_CHILD_NOTES_DIR",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EXECPATH",
    }
)
#: Without a terminal it does not ask whether a folder is trusted: hooks, servers, skills and agents of a cloned
#: repository would run. So it gets none of the project's settings, only its CLAUDE.md, as that of an added folder.
_OF_THE_PROJECT = ("--setting-sources=user", "--add-dir=.")
_SET = {
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    # Makes it report when it is idle: the only reliable sign of its end while sub-agents run in the background.
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1",
}


def claude_argv(order: Order) -> list[str]:
    """Return the command line. Role, schema and prompt are not on it: they go through standard input."""
    argv = [order.program, "-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose"]
    argv += ["--permission-prompt-tool=stdio", "--forward-subagent-text", *_OF_THE_PROJECT]
    if order.resume:
        argv.append(f"--resume={order.resume}")
    elif order.session:
        argv.append(f"--session-id={order.session}")
    named = {
        "model": order.model,
        "effort": order.effort,
        "max-turns": order.max_turns,
        "max-budget-usd": order.max_budget_usd,
    }
    argv += [f"--{name}={value}" for name, value in named.items() if value is not None]
    return argv + _mode(order) + _tools(order) + _servers(order) + _settings(order)


def _tools(order: Order) -> list[str]:
    # The person's own skills and commands may run a shell.
    guard = ["--disable-slash-commands"] if order.read_only else []
    offered = builtin_tools(order)
    return guard if offered is None else [*guard, f"--tools={','.join(offered)}"]


def builtin_tools(order: Order) -> list[str] | None:
    """Return the built-in tools that it may use; None if it may use all of them."""
    wanted = None if order.tools is None else [name.partition("(")[0].strip() for name in order.tools]
    if order.read_only:
        return [name for name in READING_TOOLS if wanted is None or name in wanted]
    return None if wanted is None else [name for name in wanted if not name.startswith("mcp__")]


def _servers(order: Order) -> list[str]:
    # It is unknown what a server's tools do: a read-only agent gets no servers.
    if order.read_only:
        return ["--strict-mcp-config"]
    is_strict = order.tools is not None and not any(name.startswith("mcp__") for name in order.tools)
    strict = ["--strict-mcp-config"] if is_strict else []
    if not order.mcp_servers:
        return strict
    servers = {name: _server(value) for name, value in order.mcp_servers.items()}
    return [*strict, f"--mcp-config={json.dumps({'mcpServers': servers})}"]


def _mode(order: Order) -> list[str]:
    return [] if order.stance == BY_OWN_SETTINGS else [f"--permission-mode={MODE}"]


def _settings(order: Order) -> list[str]:
    """Return the settings that hold beside the person's own: nothing of theirs takes them back."""
    denied = [*_walls(order), *_denials(order)]
    permissions: dict[str, object] = {"deny": denied} if denied else {}
    if order.stance == BY_OWN_SETTINGS:
        settings: dict[str, object] = {"permissions": permissions} if permissions else {}
    else:
        settings = {**PINNED, "permissions": {**PINNED_PERMISSIONS, **permissions}}
    return [f"--settings={json.dumps(settings)}"] if settings else []


def _denials(order: Order) -> list[str]:
    """Return the denials that the program can enforce as well: whole tools that no rule before them allows.

    >>> rules = [{"tool": tool, "pattern": "*", "answer": "deny"} for tool in ("bash", "mcp__w__*", "*")]
    >>> _denials(Order("claude", "claude", "general", "do it", permissions=rules))
    ['Bash', 'mcp__w__*']
    """
    found: dict[str, None] = {}
    for rules in (order.permissions, *order.denied_above):
        for rule in takewhile(lambda rule: rule.get("answer") == "deny", rules):
            tool = rule.get("tool", "")
            if rule.get("pattern") == "*" and (name := _own_name(tool)):
                found[name] = None
    return list(found)


def _own_name(tool: str) -> str | None:
    """Return the program's name of a tool in a rule; None where the rule may be for several."""
    if tool.lower() in SHELLS:
        return "Bash"
    return tool if _TOOL.fullmatch(tool) else _BY_LOWER.get(tool.lower())


def _walls(order: Order) -> list[str]:
    """Return the rules that protect the files of other workers: in every mode, and whatever else is allowed.

    Nobody is asked about a denied path. It is enforced for paths that a shell command names plainly, and by the
    program's own sandbox. Rules have no exceptions, so in a worktree the parts of the root are listed one by one.
    """
    if not order.walls:
        return []
    workspace, inner = str(order.walls.get("workspace")), order.walls.get("inRoot") or []
    closed = [path for path in order.walls.get("closed") or [] if not (inner and lies_in(workspace, path))]
    denied = [f"Edit({rule})" for path in [*closed, *inner] for rule in _rules(path)]
    denied += [f"Edit({_pattern(workspace)}/**/.agentctl/**)"]
    return denied + [f"Read({rule})" for path in order.walls.get("hidden") or [] for rule in _rules(path)]


def _rules(path: str) -> tuple[str, str]:
    """Return the patterns of a file, or of a folder with all that is in it."""
    return _pattern(path), f"{_pattern(path)}/**"


def _pattern(path: str) -> str:
    """Return the pattern for one path: an absolute one begins with two slashes, the rest is as in a .gitignore.

    >>> print(_pattern("/home/me/a [1]"))
    //home/me/a\\ \\[1\\]
    """
    return "/" + _SPECIAL.sub(r"\\\g<0>", path)


def _server(value: Mapping[str, object]) -> dict[str, object]:
    return {key: item for key, item in value.items() if key in _SERVER_KEYS}


def asks_before_calls(order: Order) -> bool:
    """Return whether the program is to call us before each call of a tool: where anything is to be held."""
    return order.stance != ALLOWING and not (order.stance == BY_OWN_SETTINGS and not order.restrictions)


def claude_environ(_: Order, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the worker's environment without the variables of a Claude Code that started it."""
    return {name: value for name, value in environ.items() if name not in _INHERITED} | _SET


def offered_by(order: Order) -> Callable[[str], bool] | None:
    """Return a function that returns whether a tool may be used at all; None if any tool may."""
    if order.tools is None and not order.read_only:
        return None
    builtin = frozenset(builtin_tools(order) or ())
    if builtin & AGENT_TOOLS:
        builtin |= AGENT_TOOLS  # Two names of one tool.
    servers = () if order.read_only else tuple(f"mcp__{name}__" for name in order.mcp_servers)
    named = () if order.read_only else tuple(name for name in order.tools or () if name.startswith("mcp__"))

    def is_offered(tool: str) -> bool:
        if tool.startswith("mcp__"):
            return tool.startswith(servers) or any(tool == name or tool.startswith(f"{name}__") for name in named)
        return tool in builtin

    return is_offered

"""Codex without its app-server: `codex exec --json`, for orders in which nobody has to be asked.

Facts that the code rests on, seen with the version in `DRIVER`:

- `codex exec` never asks. What its sandbox does not let through fails; a tool of an MCP server that the config approves
  runs, outside the sandbox.
- `--sandbox` counts more than whatever the config says, also before `resume`; a version that does not know
  `--ignore-rules` ends at once. `default_permissions` on the command line counts more than a `sandbox_mode` of the
  config, but not for a version that knows no profiles: `sandbox -P` ends unhappily there.
- An MCP server is switched off by its name alone; `mcp list` names those of the project too.
- The prompt is read from stdin to its end. The folder is that in which it is started, also of a resumed thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentctl.drivers.codex.execdialogue import ExecDialogue
from agentctl.drivers.codex.opening import server
from agentctl.drivers.codex.walls import PROFILE, link_in, profile
from agentctl.drivers.dialogue import Driver, Fallback
from agentctl.drivers.order import Order
from agentctl.drivers.values import object_in, text_in
from agentctl.errors import Refused

#: What it has no means for: the order's field -> the definition's key.
_CANNOT = {"keep": "keep", "max_turns": "maxTurns", "max_budget_usd": "maxBudgetUsd", "tools": "tools"}
_NEWER = "use a Codex whose app-server starts"
#: What acts outside the sandbox and is configured for the person, not for this agent.
CONFINED = ("features.apps=false", "features.plugins=false")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]+")
#: Names what the person has excluded of `workspace-write`, by Codex's own keys.
_CLOSED = 'test -w /tmp || echo exclude_slash_tmp; test -w "${TMPDIR:-/tmp}" || echo exclude_tmpdir_env_var'
_SWITCHED_OFF: dict[str, Any] = {"enabled": False}


def fallback(driver: Driver) -> Fallback:
    """Return the fallback to `codex exec` for a driver that uses the app-server."""
    honours = frozenset({"model", "effort", "readOnly", "permissions", "resume", "mcpServers"})
    # It tells its tokens at the end alone: no limit can hold it in between.
    way = driver._replace(name="codex exec", argv=argv, dialogue=ExecDialogue, honours=honours, reports=frozenset())
    return Fallback(way, ready)


def ready(order: Order, ask: Callable[[list[str]], bytes]) -> Order:
    """Return an order that `codex exec` can keep to.

    One that is confined gets no MCP server but those that a read-only agent's definition gives.

    Raises:
        Refused: Somebody would have to be asked, or there is no means for what the order restricts.
    """
    for field, key in _CANNOT.items():
        if getattr(order, field):
            raise Refused(f"`codex exec` cannot honour {key}", hint=_NEWER)
    answers = _answers(order.permissions) | ({"deny"} if order.denied_above else set())
    is_told = len(answers) == 1 and "ask" not in answers
    if not is_told and not (order.read_only and "deny" not in answers):
        raise Refused(
            "`codex exec` cannot run this agent: it asks nobody, and the rules do not give one answer to everything",
            hint=f"use --permissions allow or deny, or {_NEWER}",
        )
    if not _is_confined(order):
        return _walled(order, ask) if order.walls else order
    given = order.mcp_servers if order.read_only else {}
    configured = _configured_servers(ask([order.program, "mcp", "list", "--json"]))
    return order._replace(mcp_servers={**dict.fromkeys(configured, _SWITCHED_OFF), **given})


def argv(order: Order) -> list[str]:
    """Return the command line; the prompt comes on stdin."""
    confined = _is_confined(order)
    flags = [*_settings(order), *(CONFINED if confined else _profile(order))]
    sandbox = [] if order.walls and not confined else ["--sandbox", "read-only" if confined else "workspace-write"]
    return [
        *(order.program, "exec", "--json", "--skip-git-repo-check"),
        *sandbox,
        # What a person's rules allow runs outside the sandbox.
        *(["--ignore-rules"] if confined else []),
        *(word for flag in flags for word in ("-c", flag)),
        *(["resume", order.resume] if order.resume else []),
        "-",
    ]


def _walled(order: Order, ask: Callable[[list[str]], bytes]) -> Order:
    """Return an order with the temporary folders that the person has closed, once its walls were tried.

    What else they have configured for the sandbox is not known here, and opens nothing.
    """
    if (problem := link_in(order)) is not None:
        raise Refused(problem, hint="make it a folder, or give the agent a --worktree")
    closed = ask([order.program, "sandbox", "-c", 'sandbox_mode="workspace-write"', "--", "sh", "-c", _CLOSED])
    order = order._replace(walls={**order.walls, "settings": dict.fromkeys(closed.decode(errors="replace").split(), 1)})
    flags = [word for flag in _profile(order) for word in ("-c", flag)]
    ask([order.program, "sandbox", *flags, "-P", PROFILE, "--", "true"])
    return order


def _profile(order: Order) -> list[str]:
    if not order.walls:
        return []
    value = toml(profile(order, object_in(order.walls.get("settings"))))
    return [f"permissions.{PROFILE}={value}", f"default_permissions={toml(PROFILE)}"]


def _answers(rules: Sequence[Mapping[str, str]]) -> set[str]:
    """Return the answers that the rules can give: those up to the rule for everything; without one, also `ask`.

    >>> sorted(_answers([{"tool": "shell", "answer": "deny"}, {"tool": "*", "answer": "allow"}, {"answer": "ask"}]))
    ['allow', 'deny']
    """
    answers = set()
    for rule in rules:
        answers.add(str(rule.get("answer")))
        if not rule.get("tool", "*").strip("*") and not rule.get("pattern", "*").strip("*"):
            return answers
    return answers | {"ask"}


def _is_confined(order: Order) -> bool:
    """Tell whether the agent may change nothing: it is read-only, or all that it would ask for is denied."""
    return order.read_only or _answers(order.permissions) == {"deny"}


def _configured_servers(output: bytes) -> list[str]:
    try:
        names = [text_in(object_in(one).get("name")) for one in json.loads(output)]
    except (ValueError, TypeError, RecursionError):
        names = [""]
    if not all(map(_SERVER_NAME.fullmatch, names)):
        raise Refused("`codex mcp list --json` did not name the MCP servers to be switched off", hint=_NEWER)
    return names


def _settings(order: Order) -> list[str]:
    settings: dict[str, Any] = {
        "approval_policy": "never",
        "developer_instructions": order.instructions or None,
        "model": order.model,
        "model_reasoning_effort": order.effort,
    }
    for name, value in order.mcp_servers.items():
        if value == _SWITCHED_OFF:
            settings[f"mcp_servers.{name}.enabled"] = False
        else:
            settings[f"mcp_servers.{name}"] = server(value, is_asked=False)
    return [f"{key}={toml(value)}" for key, value in settings.items() if value is not None]


def toml(value: Any) -> str:
    """Return a value as TOML on one line.

    >>> toml({"args": ["-c", 'echo "a"'], "enabled": False})
    '{"args"=["-c","echo \\\\"a\\\\""],"enabled"=false}'
    """
    if isinstance(value, Mapping):
        inner = (f"{toml(str(key))}={toml(item)}" for key, item in value.items() if item is not None)
        return f"{{{','.join(inner)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(toml, value))}]"
    # JSON's strings, numbers and booleans are TOML's; but DEL stands in a string of JSON as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

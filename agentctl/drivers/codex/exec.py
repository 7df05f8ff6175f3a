"""Runs Codex without its app-server: `codex exec --json`, for orders under which nobody has to be asked.

The code relies on these facts, observed with the version in `DRIVER`:

- `codex exec` never asks. What its sandbox does not allow fails. A tool of an MCP server that the config approves
  runs, outside the sandbox.
- `--sandbox` overrides the config, even if it precedes `resume`. A version without `--ignore-rules` exits at once.
  `default_permissions` on the command line overrides a `sandbox_mode` of the config, except in a version without
  profiles: there, `sandbox -P` fails.
- An MCP server can be switched off only by name; `mcp list` names those of the project too.
- The prompt is read from stdin to its end. The folder is the one in which it is started, even for a resumed thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentctl.drivers.codex.execdialogue import ExecDialogue
from agentctl.drivers.codex.opening import server
from agentctl.drivers.codex.toml import toml
from agentctl.drivers.codex.walls import PROFILE, link_in, profile
from agentctl.drivers.dialogue import Driver, Fallback
from agentctl.drivers.order import Order
from agentctl.drivers.values import object_in, text_in
from agentctl.errors import Refused

#: What it cannot honour: the order's field -> the definition's key.
_CANNOT = {"keep": "keep", "max_turns": "maxTurns", "max_budget_usd": "maxBudgetUsd", "tools": "tools"}
_NEWER = "use a Codex whose app-server starts"
#: Switches off what acts outside the sandbox and is configured for the person, not for this agent.
CONFINED = ("features.apps=false", "features.plugins=false")
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]+")
#: Prints what the person has excluded from `workspace-write`, by Codex's own keys.
_CLOSED = 'test -w /tmp || echo exclude_slash_tmp; test -w "${TMPDIR:-/tmp}" || echo exclude_tmpdir_env_var'
_SWITCHED_OFF: dict[str, Any] = {"enabled": False}


def fallback(driver: Driver) -> Fallback:
    """Return the fallback to `codex exec` for a driver that uses the app-server."""
    honours = frozenset({"model", "effort", "readOnly", "permissions", "resume", "mcpServers"})
    # It reports its tokens only at the end: no limit can be enforced before that.
    way = driver._replace(name="codex exec", argv=argv, dialogue=ExecDialogue, honours=honours, reports=frozenset())
    return Fallback(way, ready)


def ready(order: Order, ask: Callable[[list[str]], bytes]) -> Order:
    """Return the order in a form that `codex exec` can honour.

    A confined agent gets no MCP servers, except those in the definition of a read-only agent.

    Raises:
        Refused: Somebody would have to be asked, or `codex exec` cannot enforce what the order restricts.
    """
    for field, key in _CANNOT.items():
        if getattr(order, field):
            raise Refused(f"`codex exec` cannot honour {key}", hint=_NEWER)
    answers = _answers(order.permissions) | ({"deny"} if order.denied_above else set())
    is_decided = len(answers) == 1 and "ask" not in answers
    if not is_decided and not (order.read_only and "deny" not in answers):
        raise Refused(
            "`codex exec` cannot run this agent: it asks nobody, and its rules neither allow nor deny everything",
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
    """Return the order with the temporary folders that the person has excluded, after a test of its walls.

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
    """Return the answers of the rules up to the one that matches everything; if none does, also `ask`.

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
    """Return whether the agent may change nothing: it is read-only, or all that it would ask for is denied."""
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
        "developer_instructions": order.role or None,
        "model": order.model,
        "model_reasoning_effort": order.effort,
    }
    for name, value in order.mcp_servers.items():
        if value == _SWITCHED_OFF:
            settings[f"mcp_servers.{name}.enabled"] = False
        else:
            settings[f"mcp_servers.{name}"] = server(value, is_asked=False)
    return [f"{key}={toml(value)}" for key, value in settings.items() if value is not None]

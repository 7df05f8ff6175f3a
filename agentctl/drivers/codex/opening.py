"""The parameters with which a thread of Codex is opened: role, model, sandbox, MCP servers, and when it asks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentctl.drivers.codex.home import asked_servers
from agentctl.drivers.codex.walls import PROFILE, profile
from agentctl.drivers.order import ALLOWING, ASKING, BY_OWN_SETTINGS, Order
from agentctl.drivers.values import bounded_text, list_in, object_in, text_in
from agentctl.lean import NamedTuple

#: The profile of agents that may only read. The denied path is a dummy, whether somebody makes it or not: if any read
#: is denied, Codex keeps every command inside the sandbox, even those that rules let out of it.
_READING = "agentctl-read-only"
_FILESYSTEM = {":root": "read", "/nonexistent/agentctl": "deny"}
#: The marker of a project's folder, unless the person has configured others.
GIT = ".git"
#: The field that tells the profile of a thread.
_PROFILE_FIELD = "activePermissionProfile"
#: The sandboxes, as they are told; the stricter first. All others let everything out.
_SANDBOXES = ("readOnly", "workspaceWrite")
NEVER, ON_REQUEST, UNTRUSTED = "never", "on-request", "untrusted"
_ASKS = {ALLOWING: ON_REQUEST, BY_OWN_SETTINGS: None}
_SERVER_KEYS = frozenset(
    {"command", "args", "env", "env_vars", "cwd", "url", "bearer_token_env_var", "http_headers", "env_http_headers"}
    | {"startup_timeout_sec", "tool_timeout_sec", "supports_parallel_tool_calls", "required"}
)


def codex_greeting(order: Order) -> dict[str, Any]:
    """Return the parameters of `initialize`; only permission profiles need the experimental API."""
    capabilities = {"experimentalApi": True} if profile_of(order) else {}
    client = {"name": "agentctl", "title": "agentctl", "version": "1"}
    return {"clientInfo": client, "capabilities": capabilities}


def profile_of(order: Order) -> str | None:
    """Return the name of the thread's permission profile; None for Codex's own `workspace-write`."""
    return _READING if order.read_only else PROFILE if order.walls else None


def filesystem_for_reading(order: Order) -> dict[str, str]:
    """Return the files of the profile of an agent that may only read."""
    return _FILESYSTEM | dict.fromkeys(map(text_in, list_in(order.walls.get("hidden"))), "deny")


def is_on_top(order: Order, configured: Mapping[str, Any]) -> bool:
    """Return whether the agent's own folder is known to be the project's, so that Codex need not search for that.

    With a denied read, Codex examines each file in a process inside the sandbox, and looks into all folders above at
    once. Without markers, the project's folder is the one where the agent works, just as if no folder above had one.
    """
    if configured.get("project_root_markers") != [GIT] or "git" not in order.walls:
        return False
    return order.walls["git"] in (None, f"{text_in(order.walls.get('workspace')).rstrip('/')}/{GIT}")


def thread_params(order: Order, configured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `thread/start` or `thread/resume`; `configured` is the person's config.

    A resumed thread gets its folder too: otherwise it would continue in that of its first run.
    """
    params: dict[str, Any] = {
        "model": order.model,
        "developerInstructions": order.role or None,
        "approvalPolicy": approval_policy(order),
        "approvalsReviewer": reviewer(order),
        "config": _config(order, configured),
    }
    params |= {"permissions": profile_of(order)} if profile_of(order) else {"sandbox": "workspace-write"}
    if order.resume:
        params |= {"threadId": order.resume, "cwd": order.cwd or None, "excludeTurns": True}
    return {key: value for key, value in params.items() if value not in (None, {})}


def reviewer(order: Order) -> str | None:
    """Return who answers Codex's requests: they come here, unless the person's config decides."""
    return None if order.stance == BY_OWN_SETTINGS else "user"


class Difference(NamedTuple):
    """In what a program does not work as it was ordered."""

    what: str
    #: It asks otherwise, which is left to the person's own settings where they order that.
    is_in_asking: bool = False


def tells_no_profile(order: Order, opened: Mapping[str, Any]) -> bool:
    """Return whether an opened thread lacks the field of its permission profile: an older Codex has no profiles."""
    return profile_of(order) is not None and _PROFILE_FIELD not in opened


def difference(order: Order, settings: Mapping[str, Any], *, has_network: bool | None = None) -> Difference | None:
    """Return in what the settings of a thread are not those that were ordered; None if they are.

    Args:
        settings: As they are told when the thread is opened (`sandbox`), or changed (`sandboxPolicy`).
        has_network: The sandbox was ordered with the network; None: that is not known.

    >>> order = Order("codex", "/bin/codex", "general", "x")
    >>> difference(order, {"approvalPolicy": "never", "approvalsReviewer": "user"}).what
    'its approvalPolicy is never, not on-request'
    """
    asks = {"approvalPolicy": approval_policy(order), "approvalsReviewer": reviewer(order)}
    for name, value in asks.items():
        if value is not None and settings.get(name) != value:
            return Difference(f"its {name} is {_as_text(settings.get(name))}, not {value}", is_in_asking=True)
    ordered, active = profile_of(order), settings.get(_PROFILE_FIELD)
    found = object_in(active).get("id") or active
    if ordered is not None and found != ordered:
        return Difference(f"its permission profile is {_as_text(found)}, not {ordered}")
    return _freer_sandbox(order, settings.get("sandbox", settings.get("sandboxPolicy")), has_network)


def network_in(configured: Mapping[str, Any]) -> bool:
    """Return whether the person's config gives the network to an agent that may write."""
    return bool(object_in(configured.get("sandbox_workspace_write")).get("network_access"))


def _freer_sandbox(order: Order, sandbox: Any, has_network: bool | None) -> Difference | None:
    """Return in what a sandbox lets more out than it was ordered to; only an old order takes one that is not told."""
    if sandbox is None and profile_of(order) is None:
        return None
    kind, allowed = object_in(sandbox).get("type"), _SANDBOXES[: 1 if order.read_only else 2]
    if kind not in allowed:
        return Difference(f"its sandbox is {_as_text(kind)}, not {allowed[-1]}")
    may_connect = False if order.read_only else has_network
    if may_connect is False and object_in(sandbox).get("networkAccess") not in (None, False):
        return Difference("its sandbox has the network, which was not ordered")
    return None


def _as_text(value: Any) -> str:
    return bounded_text(value if isinstance(value, str) else json.dumps(value))


def turn_params(order: Order, thread: str, texts: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of `turn/start`."""
    params = {"threadId": thread, "input": inputs(texts), "effort": order.effort, "outputSchema": order.output_schema}
    return {key: value for key, value in params.items() if value is not None}


def inputs(texts: Iterable[str]) -> list[dict[str, str]]:
    """Return messages in the form that Codex takes."""
    return [{"type": "text", "text": text} for text in texts]


def approval_policy(order: Order) -> str | None:
    """Return when Codex asks; None leaves that to the person's config.

    Never, before a command leaves the sandbox (where nothing is said of permissions), or before anything not known as
    harmless: a policy, and a rule that denies or asks, can be enforced only if Codex asks.

    The requests of a read-only agent are not passed on: a yes could let a command out of the sandbox, and nothing in
    the request says whether it would. So a `deny` leaves such an agent only what Codex knows to be harmless, and an
    `ask` changes nothing.
    """
    if order.read_only:
        return UNTRUSTED if any(rule["answer"] == "deny" for rule in order.restrictions) else NEVER
    if order.stance in _ASKS:
        return _ASKS[order.stance]
    return UNTRUSTED if order.restrictions else ON_REQUEST


def _config(order: Order, configured: Mapping[str, Any]) -> dict[str, Any]:
    others = {
        name: object_in(value)
        for name, value in object_in(configured.get("mcp_servers")).items()
        if name not in order.mcp_servers
    }
    # Nobody is asked for a read-only agent, so the servers in its definition are approved.
    servers = {name: server(value, is_asked=not order.read_only) for name, value in order.mcp_servers.items()}
    config: dict[str, Any] = {}
    if order.read_only:
        config[f"permissions.{_READING}"] = {"filesystem": filesystem_for_reading(order)}
        # All others are switched off: they run outside the sandbox, and it is unknown which of their tools write.
        servers |= {name: {"enabled": False} for name in others}
        config |= {"project_root_markers": []} if is_on_top(order, configured) else {}
    elif order.walls:
        config[f"permissions.{PROFILE}"] = profile(order, object_in(configured.get("sandbox_workspace_write")))
    if order.stance == ASKING:
        # There may be servers of the machine, too: the person's own are asked about by the settings that it gets.
        modes = {name: {"tools": dict.fromkeys(object_in(value.get("tools")))} for name, value in others.items()}
        servers = asked_servers({**servers, **modes})
    return config | ({"mcp_servers": servers} if servers else {})


def server(value: Any, *, is_asked: bool) -> dict[str, Any]:
    """Return an MCP server in the form that Codex takes; its tools are approved unless somebody is asked."""
    known = {key: item for key, item in value.items() if key in _SERVER_KEYS} if isinstance(value, Mapping) else {}
    return known | ({} if is_asked else {"default_tools_approval_mode": "approve"})

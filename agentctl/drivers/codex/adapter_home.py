"""The home of a Codex that another program starts, which takes no settings but those of its folder.

Such a program is told by a mode which permission profile it is to use, and asks as the config says. So the config says
what `opening.py` says to an app-server, except that it may not say `untrusted` (since 0.171): where that would be said,
a profile in which commands may only read has everything else asked about.

The servers of the order are in the config as well: by the adapter's own protocol nothing can be said of how their tools
are asked about, and a tool that calls itself harmless would run unasked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agentctl.drivers.codex.home import FOLDER, asked_servers, config_in, replaced_with
from agentctl.drivers.codex.home import replaced_home as usual_home_of
from agentctl.drivers.codex.opening import (
    GIT,
    NEVER,
    ON_REQUEST,
    filesystem_for_reading,
    is_on_top,
    profile_of,
    reviewer,
    server,
)
from agentctl.drivers.codex.walls import PROFILE, profile
from agentctl.drivers.dialogue import HomeFolder, Replaced
from agentctl.drivers.order import Order
from agentctl.drivers.values import object_in

#: Where a rule may deny: all that a command may do unasked is to read.
_RESTRICTED = {"filesystem": {":root": "read"}}
#: What is said where nothing is known of walls.
_WRITING = {"extends": ":workspace"}


def home_of(order: Order) -> HomeFolder | None:
    """Return what is replaced; None where the person's own settings may decide, or nothing is restricted."""
    return FOLDER._replace(replaced=_replaced, makes_databases=_makes_databases) if usual_home_of(order) else None


def _makes_databases(order: Order) -> list[str]:
    return [order.program, "cli", "app-server"]


def _replaced(order: Order, files: Mapping[str, bytes]) -> Replaced:
    configured = config_in(order, files)
    name, known = profile_of(order) or PROFILE, object_in(configured.get("mcp_servers"))
    more: dict[str, Any] = {
        "approval_policy": NEVER if order.read_only else ON_REQUEST,
        "approvals_reviewer": reviewer(order),
        "default_permissions": name,
        "permissions": {**object_in(configured.get("permissions")), name: _profile(order, configured)},
    }
    # What a config does not say is the program's default.
    more |= {"project_root_markers": []} if is_on_top(order, {"project_root_markers": [GIT], **configured}) else {}
    servers = _servers(order, known)
    return replaced_with(order, files, more | ({"mcp_servers": servers} if servers else {}))


def _servers(order: Order, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the MCP servers of the person and of the order, which comes first where both name one."""
    if order.read_only:
        return {name: {**object_in(settings), "enabled": False} for name, settings in known.items()}
    return asked_servers({**known, **{_name(name): _server(value) for name, value in order.mcp_servers.items()}})


def _name(name: str) -> str:
    """Return the name of a server as the adapter would give it to Codex, which takes no blanks in it.

    >>> _name("My server")
    'My_server'
    """
    return re.sub(r"\s", "_", name)


def _server(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server of the order, as `server` does; one over HTTP has its headers by the name that editors use."""
    headers = {key: str(item) for key, item in object_in(value.get("headers")).items()}
    return server({**({"http_headers": headers} if headers else {}), **value}, is_asked=True)


def _profile(order: Order, configured: Mapping[str, Any]) -> Mapping[str, Any]:
    if order.read_only:
        return {"filesystem": filesystem_for_reading(order)}
    if order.restrictions:
        return _RESTRICTED
    return profile(order, object_in(configured.get("sandbox_workspace_write"))) if order.walls else _WRITING

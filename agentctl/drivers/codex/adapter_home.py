"""The home of a Codex that another program starts, which takes no settings but those of its folder.

Such a program is told by a mode which permission profile it is to use, and asks as the config says. So the config says
what `opening.py` says to an app-server, except that it may not say `untrusted` (since 0.171): where that would be said,
a profile in which commands may only read has everything else asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentctl.drivers.codex.home import FOLDER, config_in, replaced_with
from agentctl.drivers.codex.home import home_of as usual_home_of
from agentctl.drivers.codex.opening import NEVER, ON_REQUEST, filesystem_for_reading, profile_of, reviewer
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
    more = {
        "approval_policy": NEVER if order.read_only else ON_REQUEST,
        "approvals_reviewer": reviewer(order),
        "default_permissions": name,
        "permissions": {**object_in(configured.get("permissions")), name: _profile(order, configured)},
    }
    off = {server: {**object_in(settings), "enabled": False} for server, settings in known.items()}
    return replaced_with(order, files, more | ({"mcp_servers": off} if order.read_only and off else {}))


def _profile(order: Order, configured: Mapping[str, Any]) -> Mapping[str, Any]:
    if order.read_only:
        return {"filesystem": filesystem_for_reading(order)}
    if order.restrictions:
        return _RESTRICTED
    return profile(order, object_in(configured.get("sandbox_workspace_write"))) if order.walls else _WRITING

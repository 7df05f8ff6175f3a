"""Which MCP servers of a client its agent gets: those that a person has chosen, and that hold no secret.

An order is a file, and some programs take their servers from the command line. So a server with variables or headers of
its own is not passed on: they are mostly keys. Nor is any to an agent that may only read: what a tool does is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from acp.schema import HttpMcpServer, McpServerStdio

from agentctl.domain.agent.agentspec import AgentSpec
from agentctl.domain.agent.own_tools import SERVER
from agentctl.domain.text.plaintext import plain, whole_json
from agentctl.drivers.dialogue import Driver
from agentctl.lean import NamedTuple
from agentctl.operations.talk.answerers import who_answers

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_MOST = 50


class ClientServers(NamedTuple):
    """The servers of a client."""

    #: name -> how it is reached, as orders have it.
    usable: dict[str, dict[str, Any]]
    #: name -> why it is not used.
    left_out: dict[str, str]


def servers_of(given: Sequence[Any] | None) -> ClientServers:
    """Return a client's servers, those that can be passed on and those that cannot."""
    found = ClientServers({}, {})
    for server in list(given or ())[:_MOST]:
        name, why = str(server.name), _why_not(server)
        if not why and name in found.usable:
            why = "another one has this name"
        if why:
            found.left_out[plain(name)[:50]] = why
        else:
            found.usable[name] = whole_json(_reached(server))
    return found


def _why_not(server: Any) -> str:
    if not _NAME.fullmatch(server.name) or server.name == SERVER:
        return "its name cannot be used"
    if isinstance(server, McpServerStdio):
        return "it has variables, which may be keys" if server.env else ""
    if not isinstance(server, HttpMcpServer):
        return "only servers on standard input, and over HTTP, can be passed on"
    if server.headers:
        return "it has headers, which may be keys"
    return "" if _is_plain(server.url) else "its address may hold a key, or is not an address"


def _is_plain(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not (parts.query or "@" in parts.netloc)


def _reached(server: McpServerStdio | HttpMcpServer) -> dict[str, Any]:
    if isinstance(server, McpServerStdio):
        return {"command": server.command, "args": list(server.args)}
    return {"type": "http", "url": server.url}


def passed_on(servers: ClientServers, spec: AgentSpec, driver: Driver) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the servers that an agent gets, and what its user should know about the others."""
    why = ""
    if who_answers().is_agent:
        why = "an agent has started this client"
    elif spec.read_only:
        why = f"{spec.name} may only read, and what a server's tools do is unknown"
    elif "mcpServers" not in driver.honours:
        why = f"the driver {driver.name} takes none"
    left_out = servers.left_out | (dict.fromkeys(servers.usable, why) if why else {})
    notes = [f"The MCP server {name} is not passed on: {reason}." for name, reason in left_out.items()]
    return {} if why else servers.usable, notes

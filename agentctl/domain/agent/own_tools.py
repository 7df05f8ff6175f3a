"""agentctl's own tools, as they are offered to an agent: their names, and which of them a definition grants."""

from __future__ import annotations

from collections.abc import Sequence

#: Our server, as agent programs know it.
SERVER = "agentctl"
#: The server in definitions; with `PREFIX`, each of its tools in definitions and rules.
ALL_OURS = f"mcp__{SERVER}"
PREFIX = f"{ALL_OURS}__"
#: The variable that names the file with the server's prepared first answers.
OFFER_VARIABLE = "AGENTCTL_OFFER"
#: The variable that has the server complete its environment by that of the worker it serves.
INHERIT_VARIABLE = "AGENTCTL_INHERIT"
#: Makes a server print these answers and exit.
OFFER = "--offer"


def ours_among(tools: Sequence[str] | None) -> tuple[str, ...]:
    """Return the patterns of agentctl's own tools that an agent has, by the list of tools in its definition.

    Args:
        tools: The only tools that it may use; None: any tool.

    >>> ours_among(["Read", "mcp__agentctl__wait"]), ours_among(["Read"]), ours_among(["mcp__agentctl"])
    (('wait',), (), ('*',))
    """
    named = None if tools is None else [tool.partition("(")[0].strip() for tool in tools]
    if named is None or ALL_OURS in named:
        return ("*",)
    return tuple(name.removeprefix(PREFIX) for name in named if name.startswith(PREFIX))

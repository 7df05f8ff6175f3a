"""The names by which an agent's own MCP server finds the answers that were prepared for it."""

from __future__ import annotations

#: Our server, as agent programs know it.
SERVER = "agentctl"
#: The variable that names the file in which the server's first answers are got ready.
OFFER_VARIABLE = "AGENTCTL_OFFER"
#: Has a server print these answers, and leave.
OFFER = "--offer"

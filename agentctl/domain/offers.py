"""The names that an agent's own server shares with whoever prepares the server's first answers."""

from __future__ import annotations

#: Our server, as agent programs know it.
SERVER = "agentctl"
#: The variable that names the file in which the server's first answers are got ready.
OFFER_VARIABLE = "AGENTCTL_OFFER"
#: Has a server print these answers, and leave.
OFFER = "--offer"

"""By which names whoever starts an agent's own server ahead and that server know each other."""

from __future__ import annotations

#: The variable that names the file in which the server's first answers are got ready.
OFFER_VARIABLE = "AGENTCTL_OFFER"
#: Has a server print these answers, and leave.
OFFER = "--offer"

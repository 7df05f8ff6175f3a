"""Names shared by an agent's own server and the code that prepares the server's first answers."""

from __future__ import annotations

#: Our server, as agent programs know it.
SERVER = "agentctl"
#: The variable that names the file with the server's prepared first answers.
OFFER_VARIABLE = "AGENTCTL_OFFER"
#: The variable that has the server complete its environment by that of the worker it serves.
INHERIT_VARIABLE = "AGENTCTL_INHERIT"
#: Makes a server print these answers and exit.
OFFER = "--offer"

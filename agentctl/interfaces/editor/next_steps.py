"""What the user of a client does next, by the reason for which their agent has failed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.states import Reason
from agentctl.supervision.worker.spec import order_of

_LATER = "send the prompt again later: the conversation goes on where it stopped"
#: A request that the server will not take later either; 408, 409 and 425 are about the moment.
_REFUSED_STATUS = re.compile(r"(?<![\w.])4(?!08|09|25)\d\d(?![\w.]*\d)")


def step_in_words(worker: WorkerDir, reason: str, said: str) -> str:
    """Return the next step in words.

    Args:
        said: The words of the program, or of the server.
    """
    match reason:
        case Reason.AUTH | Reason.BILLING:
            provider = order_of(worker).get("provider")
            if isinstance(provider, dict) and provider:
                return _key_step(provider, reason)
            return "log in with the agent's own program (agentctl doctor names it), then send the prompt again"
        case Reason.NOT_INSTALLED | Reason.NOT_STARTED:
            return "agentctl doctor says which agent programs are installed, and how to get the others"
        case Reason.RATE_LIMITED | Reason.OVERLOADED:
            return _LATER
        case Reason.MODEL_ERROR if is_mended_by_time(said):
            return _LATER
        case _:
            return why_command(worker)


def is_mended_by_time(said: str) -> bool:
    """Return whether a failure of a provider may be over later: unless it has refused the request as it is.

    >>> is_mended_by_time("the server answered 404: no such model"), is_mended_by_time("API Error: 500")
    (False, True)
    >>> is_mended_by_time("cannot be reached at http://127.0.0.1:8411/v1"), is_mended_by_time("HTTP 408")
    (True, True)
    """
    return _REFUSED_STATUS.search(said) is None


def _key_step(provider: Mapping[str, Any], reason: str) -> str:
    """Return where the key of a provider comes from: a plain model has no program to log in with."""
    name, variable, command = (provider.get(key) for key in ("name", "keyVariable", "keyCommand"))
    if command:
        ways = f"let its keyCommand ({command[0]}) print one"
        ways = f"set {variable}, or {ways}" if variable else ways
    elif variable:
        ways = f"set {variable} in the environment in which the editor starts agentctl"
    else:
        ways = "name its keyVariable or keyCommand in ~/.config/agentctl/providers.yaml"
    wanted = "a key whose account has credit" if reason == Reason.BILLING else "a valid key"
    return f"{name} needs {wanted}: {ways}; then start agentctl acp anew, load the session, and send the prompt again"


def why_command(worker: WorkerDir) -> str:
    """Return the command that says why a worker is as it is."""
    root = shlex.quote(str(worker.task.root.path))
    return f"agentctl why {worker.instance} --task {worker.task.id} --root {root}"

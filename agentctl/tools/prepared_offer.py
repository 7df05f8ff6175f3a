"""The offer of tools that a host prepares for its agent, and that whoever offers them to the agent takes up once."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping

from agentctl.domain.agent.own_tools import OFFER_VARIABLE
from agentctl.lean import Any

#: What is said about the tools: `instructions`, and `tools` as they are listed.
Offer = Mapping[str, Any]


def prepared() -> Offer | None:
    """Return the offer that was prepared for this process, once; None if there is none or it is incomplete.

    The process that prepares it holds the file's lock until it is done, or dead.
    """
    path = os.environ.pop(OFFER_VARIABLE, None)
    if path is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            os.unlink(path)
            fcntl.flock(file, fcntl.LOCK_SH)
            offer = json.load(file)
        return offer if isinstance(offer, dict) and {"instructions", "tools"} <= offer.keys() else None
    except (OSError, ValueError):
        return None

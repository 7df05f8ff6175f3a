"""Asks an agent program something before it is started: what it prints for a command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import Order
from agentctl.driving.starting import environ_of
from agentctl.errors import Refused

#: How long the program may take to answer.
_QUERY_S = 60


def query(argv: list[str], order: Order, driver: Driver) -> bytes:
    """Return the output of a command line of the program.

    Raises:
        Refused: The program could not be started, took too long, or failed.
    """
    try:
        done = subprocess.run(
            argv,
            env=environ_of(order, driver),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_QUERY_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(f"{driver.name} could not be queried: {error}", hint=driver.install) from error
    return done.stdout


def own_settings(argv: list[str], order: Order, driver: Driver) -> Mapping[str, Any]:
    """Return what the program prints of the person's own settings of it.

    Raises:
        Refused: It prints none that can be read: what the person denies in them would not be denied.
    """
    try:
        found = json.loads(query(argv, order, driver))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        what = f"{' '.join(argv)} printed no settings: what they deny would not be denied"
        raise Refused(what, hint="`--permissions own` starts it as your settings of it say")
    return found

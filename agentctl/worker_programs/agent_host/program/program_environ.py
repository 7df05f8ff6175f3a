"""The environment of an agent program: that of its worker, with what its driver sets and its own home."""

from __future__ import annotations

import os

from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import Order


def program_environ(order: Order, driver: Driver) -> dict[str, str]:
    """Return the environment of the program of an order."""
    own = {order.home["variable"]: order.home["own"]} if order.home else {}
    return driver.environ(order, {**os.environ, **own})

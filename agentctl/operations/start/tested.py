"""Checks at the start of an agent whether what is known of its program holds for its version."""

from __future__ import annotations

from agentctl.adapters.versions import version_of
from agentctl.domain.text.versions import parts
from agentctl.drivers.dialogue import Driver
from agentctl.drivers.order import ASKING, READ_ONLY, Order
from agentctl.errors import Refused

_MEANS = "another version may ask less"


def version_warnings(driver: Driver, order: Order) -> tuple[str, ...]:
    """Return a warning where a program is newer than the tested one, of no version that can be told, or untested.

    Raises:
        Refused: The program is older than any that its driver understands.
    """
    if driver.is_ours or not driver.program:
        return ()
    if not driver.tested:
        is_restricted = driver.extra is not None and order.stance in (ASKING, READ_ONLY)
        what = f"no version of {driver.program} was tried: only its row says what it asks, and what it may not do"
        return (what,) if is_restricted else ()
    version = version_of(order.program, tuple(driver.version_argv))
    if version is None:
        return (f"the version of {driver.program} is unknown, and {driver.tested} was tried: {_MEANS}",)
    if parts(version) < parts(driver.oldest):
        what = f"{driver.program} {version} is too old: agentctl needs {driver.oldest} or newer"
        raise Refused(what, hint=driver.install)
    if parts(version) > parts(driver.tested):
        return (f"{driver.program} {version} is newer than {driver.tested}, which was tried: {_MEANS}",)
    return ()

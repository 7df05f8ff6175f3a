"""What the far end is asked to do: a command line, and what there is to know of the terminal here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence

from agentctl.domain.hosts import CommandHost
from agentctl.encoding import TYPED_IN, typed_in
from agentctl.errors import UsageError
from agentctl.lean import Any, NamedTuple
from agentctl.operations.where.agents_above import PASSED_ON, agent_above
from agentctl.operations.where.calling import BY_HOST, BY_SEAT, FROM_AGENT, FROM_WORKER
from agentctl.operations.where.chosen_task import seat_here

#: Of the environment here a command elsewhere gets these alone: how to draw, and whether a model calls.
_FORWARDED = ("TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "TZ", *PASSED_ON)
_LONGEST_VALUE = 1000


class FarOrder(NamedTuple):
    """One command for the far end."""

    argv: list[str]
    environ: dict[str, str]
    folder: str | None
    #: Of the terminal here; to everything else UTF-8 is printed.
    encoding: str
    #: Of its standard streams: whether each is a terminal here.
    terminals: tuple[bool, bool, bool]
    #: Columns and rows.
    size: tuple[int, int]
    #: It has the whole terminal, as an editor has.
    is_screen: bool
    #: How long this side may be silent.
    silent_s: float

    def encoded(self) -> bytes:
        """Return what is sent."""
        return json.dumps(self._asdict()).encode()


def order_for(
    host: CommandHost,
    argv: Sequence[str],
    *,
    terminals: tuple[bool, bool, bool] = (False, False, False),
    is_screen: bool = False,
    is_worker: bool = False,
) -> FarOrder:
    """Return the order for a command on a host.

    Args:
        is_worker: A worker here calls.
    """
    environ = {name: os.environ[name][:_LONGEST_VALUE] for name in _FORWARDED if name in os.environ}
    environ[BY_HOST], environ[TYPED_IN] = host.name, typed_in()
    environ |= {BY_SEAT: seat} if (seat := seat_here()) is not None else {}
    if is_worker:
        environ[FROM_WORKER] = "1"
    elif _may_be_an_agents():
        environ[FROM_AGENT] = "1"
    shown = sys.stdout if terminals[1] else sys.stderr if terminals[2] else None
    encoding = "utf-8" if shown is None else shown.encoding
    return FarOrder(
        list(argv), environ, host.folder, encoding, terminals, terminal_size(), is_screen, max(2 * host.silent_s, 60.0)
    )


def _may_be_an_agents() -> bool:
    """Return whether an agent that a person has started by hand calls, or nobody can tell."""
    try:
        return agent_above() is not None
    except UsageError:  # The file of a person's own programs is not valid: whoever needs it says so.
        return True


def terminal_size() -> tuple[int, int]:
    """Return the columns and rows of the terminal that one of the standard streams is."""
    for fd in (1, 2, 0):
        try:
            found = os.get_terminal_size(fd)
        except OSError:
            continue
        if found.columns and found.lines:
            return found.columns, found.lines
    return 80, 24


def parse_order(data: bytes) -> FarOrder:
    """Return the order that was sent.

    Raises:
        ValueError: It is not an order.
    """
    found: Any = json.loads(data)
    if not isinstance(found, Mapping):
        raise ValueError("the order is not a mapping")  # noqa: TRY004 - it is what was sent that is wrong
    try:
        argv, environ = list(map(_text, found["argv"])), {_text(k): _text(v) for k, v in found["environ"].items()}
        columns, rows = map(int, found["size"])
        given, out, err = map(bool, found["terminals"])
        folder = None if found["folder"] is None else _text(found["folder"])
        return FarOrder(
            argv, environ, folder, _text(found["encoding"]), (given, out, err), (columns, rows),
            bool(found["is_screen"]), float(found["silent_s"]),
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"the order is not whole: {error}") from error


def _text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("a text of the order is not a text")
    return value

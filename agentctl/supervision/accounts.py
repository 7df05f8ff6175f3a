"""The accounts of agent programs: how much of their usage windows is used up, and which are left alone for a while.

One file for each account among a person's own files, so all tasks of the person share it and a reboot does not lose it.
An account is held while a window of it refuses requests until a reset that was told, or, where none was told, for a
pause that was chosen (a back-off). A reset is a moment of the world, so the wall clock counts; where the machine has
not been restarted since, a clock that nobody can set tells as well how long it is, and what comes first ends the hold:
whatever is done to the wall clock, nobody waits for ever, and who starts too early is refused once more.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping

from agentctl.adapters import processes
from agentctl.adapters.clock import iso_of, since_boot
from agentctl.adapters.files import make_folder, read_quietly, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import state_folder
from agentctl.adapters.taskdir import AgentDir, TaskDir, names_in
from agentctl.domain.names import is_name
from agentctl.domain.numbers import finite
from agentctl.lean import Any, NamedTuple

#: A back-off lasts no longer.
LONGEST_BACK_OFF_S = 3600.0
#: Those that wait for one account start over so much time, or a tenth of what they waited for.
_MOST_SPREAD_S, _SPREAD = 15.0, 0.1
#: Two clocks are read one after the other, and one of them is slewed.
_CLOCKS_DIFFER_S = 5.0
_SUFFIX, MOST_ACCOUNTS = ".json", 1000


class Account(NamedTuple):
    """Whose usage windows a worker has: the name is the driver's with a short hash of what decides the login."""

    name: str
    #: Where what is known of it stands.
    folder: FilePath
    #: The model that is used, as far as that is known.
    model: str | None = None

    @property
    def path(self) -> FilePath:
        """Its file."""
        return self.folder / (self.name + _SUFFIX)


class Hold(NamedTuple):
    """That an account is left alone; times in seconds from now."""

    account: str
    #: Not above 0: it is over, and those that waited start one after the other.
    left_s: float
    #: Over so much time.
    spread_s: float
    #: The window that was used up; None for a back-off.
    window: str | None = None
    #: When it was told, or chosen, to end: seconds since 1970.
    ends_at: float | None = None

    def left_for(self, agent: AgentDir) -> float:
        """Return how long a worker has to wait: each another time, and the same at each look."""
        import zlib  # Each shim has this module, and few have somebody to wait for.

        return max(0.0, self.left_s + self.spread_s * (zlib.crc32(os.fsencode(agent.path)) % 1000) / 1000)

    @property
    def until(self) -> str:
        """When it ends, as a time stamp of whole seconds: the same at each look, unless the clock was set."""
        measured = time.time() + self.left_s
        is_as_told = self.ends_at is not None and abs(self.ends_at - measured) < _CLOCKS_DIFFER_S
        return iso_of(round(self.ends_at if is_as_told and self.ends_at is not None else measured))

    def to_json(self) -> dict[str, Any]:
        """Return what views and events tell of it."""
        return {"account": self.account, "until": self.until, "window": self.window}

    @property
    def told(self) -> str:
        """What is said of a worker that waits."""
        if self.window is None:
            return f"the account of {self.account} is left alone for another {self.left_s:.0f} s after a rate limit"
        from agentctl.domain.windows import label_of  # Few shims need it.

        return f"the account of {self.account} is used up until {self.until} ({label_of(self.window)} window)"


def folder_of_accounts(environ: Mapping[str, str] = os.environ) -> FilePath:
    """Return where a person's accounts are kept."""
    return state_folder(environ) / "accounts"


def account_of(agent: AgentDir) -> Account | None:
    """Return the account that a worker's program uses; None of a command."""
    return account_in(read_quietly(agent.spec).get("order"), agent)


def account_in(order: object, agent: AgentDir) -> Account | None:
    """Return the account that an order names."""
    if not isinstance(order, dict):
        return None
    name, folder = order.get("account"), order.get("accounts")
    if not (isinstance(name, str) and is_name(name) and isinstance(folder, str) and os.path.isabs(folder)):
        return None
    model = order.get("model") or read_quietly(agent.session).get("model")
    return Account(name, FilePath(folder), model if isinstance(model, str) else None)


def back_off(account: Account, seconds: float) -> None:
    """Leave an account alone for so long from now; one that is left alone for longer stays so."""
    seconds = min(seconds, LONGEST_BACK_OFF_S)
    make_folder(account.folder)
    with locked(account.folder / ""):
        known = read_quietly(account.path)
        before = _back_off_in(account.name, known)
        if before is None or before.left_s < seconds:
            until = {"boot": processes.boot_id(), "until": since_boot() + seconds, "seconds": seconds}
            until["endsAt"] = time.time() + seconds
            write_account(account, {**known, "backOff": until})


def forget(account: Account) -> bool:
    """Know nothing of an account any more, so that nobody waits for it; tell whether anything was known."""
    with locked(account.folder / ""), contextlib.suppress(FileNotFoundError):
        os.unlink(account.path)
        return True
    return False


def write_account(account: Account, value: Mapping[str, Any]) -> None:
    write_whole(account.path, to_json(value))


# -- what is so --------------------------------------------------------------------------------------------------------


def hold_of(account: Account, *, any_model: bool = False) -> Hold | None:
    """Return that an account is left alone; None where nobody has to wait for it.

    Args:
        any_model: Also by a window of another model than the account's worker uses.
    """
    known = read_quietly(account.path)
    if not known:
        return None
    from agentctl.supervision.accountwindows import window_holds  # A shim needs it where something is known.

    found = [hold for hold in window_holds(account, known, any_model) if hold.left_s + hold.spread_s > 0]
    if (pause := _back_off_in(account.name, known)) is not None:
        found.append(pause)
    return max(found, key=lambda hold: hold.left_s, default=None)


def held_now(account: Account, *, any_model: bool = False) -> Hold | None:
    """Return that no request of an account would be answered now."""
    hold = hold_of(account, any_model=any_model)
    return hold if hold is not None and hold.left_s > 0 else None


def all_accounts(folder: FilePath) -> list[Account]:
    """Return all accounts of which something is known."""
    names = [name.removesuffix(_SUFFIX) for name in names_in(folder, MOST_ACCOUNTS) if name.endswith(_SUFFIX)]
    return [Account(name, folder) for name in sorted(names) if is_name(name)]


def _back_off_in(name: str, known: Mapping[str, Any]) -> Hold | None:
    told = known.get("backOff")
    if not isinstance(told, dict) or told.get("boot") != processes.boot_id():
        return None
    until, seconds = finite(told.get("until")), finite(told.get("seconds"))
    if until is None or seconds is None or not 0 <= seconds <= LONGEST_BACK_OFF_S:
        return None
    hold = Hold(name, until - since_boot(), spread(seconds), ends_at=finite(told.get("endsAt")))
    return hold if -hold.spread_s < hold.left_s <= LONGEST_BACK_OFF_S else None


def spread(length_s: float) -> float:
    return min(_MOST_SPREAD_S, _SPREAD * length_s)


def note_held(root: TaskDir, account: Account) -> None:
    """Note in a tree of tasks that somebody of it waits for an account: else nobody looks for that."""
    make_folder(root.cooling)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(root.cooling / account.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

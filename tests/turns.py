"""Which third of the longest cases a landing tries: `python -m tests.turns` prints its number, and says why.

The hash of the commit chooses among the turns that the two landings before it did not have, so three landings try all.
A history does not show where a landing ended, and a clone has nothing but its history: so the last commit of a landing
says its turn in its own message, in the line `Turn: 2`, which `make turn` writes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TURNS = (1, 2, 3)
ALL = "all"
#: What has turns: the long tests, and those with real programs of others: agents, a browser, Slurm, sshd.
MARKS = ("slow", "soak", "agents", "page", "slurm", "hosts")
#: What may be given as a turn: `make test-agents TURN=2`.
CHOICES = (*map(str, TURNS), ALL)
#: Of 4,000 numbers the one that gave each turn the same share of the time that the long tests took then.
_SHUFFLE = 1248
#: The name of the line in the message of a commit.
LINE = "Turn"


class Landing(NamedTuple):
    """The last commit of a landing, and the turn that its message says."""

    commit: str
    turn: int


def turn_of(case: str) -> int:
    """Return the turn that a case has, by its name alone: a new case moves no other one."""
    return TURNS[zlib.crc32(case.encode(), _SHUFFLE) % len(TURNS)]


def chosen(commit: str, landings: Sequence[Landing]) -> int:
    """Return the turn of a commit that comes after these landings, the oldest first."""
    left = sorted({*TURNS} - {landing.turn for landing in landings[1 - len(TURNS) :]})
    return left[int(commit, 16) % len(left)]


def landings_in(log: str) -> list[Landing]:
    """Return the landings of a history, the oldest first; it is one line for each commit, the newest first."""
    known = {str(turn): turn for turn in TURNS}
    told = (line.split() for line in reversed(log.splitlines()))
    return [Landing(words[0], known[words[-1]]) for words in told if len(words) > 1 and words[-1] in known]


def _git(*args: str) -> str:
    """Return what git says in this folder.

    Raises:
        OSError: There is no git.
        subprocess.SubprocessError: There is no repository, or no commit, or git refuses.
    """
    argv = ["git", "-C", str(Path(__file__).parent), *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def _history() -> list[Landing]:
    return landings_in(_git("log", f"--format=%H %(trailers:key={LINE},valueonly,separator=%x20)"))


def _choose() -> str:
    """Return the turn of the commit that is checked out, and say on stderr why."""
    try:
        commit, landings = _git("rev-parse", "HEAD"), _history()
    except (OSError, subprocess.SubprocessError):
        print("all turns: there is no commit here that could choose one; TURN=N takes one", file=sys.stderr)
        return ALL
    turn, why = _turn_and_why(commit, landings)
    print(f"turn {turn} of {len(TURNS)} (commit {commit[:9]}; {why}): repeat it with TURN={turn}", file=sys.stderr)
    return str(turn)


def _turn_and_why(commit: str, landings: Sequence[Landing]) -> tuple[int, str]:
    if landings and landings[-1].commit == commit:
        return landings[-1].turn, "its message says it"
    before = ", ".join(f"{landing.commit[:9]} had turn {landing.turn}" for landing in landings[1 - len(TURNS) :])
    return chosen(commit, landings), f"{before or 'no landing before it'}; `make turn` writes it down for the next ones"


def _write() -> None:
    """Write its turn into the message of the commit that is checked out, unless it stands there; print it."""
    commit, landings = _git("rev-parse", "HEAD"), _history()
    turn, _ = _turn_and_why(commit, landings)
    if commit not in dict(landings):
        # `--only` without a path leaves out what is staged.
        same = ("--amend", "--only", "--no-edit", "--allow-empty", "--no-verify")
        _git("commit", "--quiet", *same, "--trailer", f"{LINE}: {turn}")
    print(f"{LINE}: {turn}")


def main() -> None:
    """Print the turn of the commit that is checked out, or write it into its message."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="write it into the message, as the last step of a change")
    if not parser.parse_args().write:
        print(_choose())
        return
    try:
        _write()
    except (OSError, subprocess.SubprocessError) as error:
        why = getattr(error, "stderr", None) or error
        parser.error(f"the message of the last commit could not be changed: {why}")


if __name__ == "__main__":
    main()

"""Which third of the cases marked `turns` a landing tries: `python -m tests.turns` prints its number, and says why.

The hash of the commit chooses among the turns that the two landings before it did not have, so three landings try all.
Hashes alone could not promise that, and history does not show where a landing ended: so a landing that
passed is written down in the folder of git, for all worktrees of a clone (`--landed N`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

TURNS = (1, 2, 3)
ALL = "all"
#: What may be given as a turn: `make test-agents TURN=2`.
CHOICES = (*map(str, TURNS), ALL)
#: In the folder of git: a line `COMMIT TURN` for each landing.
RECORD = "agentctl-landings"


class Landing(NamedTuple):
    """A commit that passed, and the turn that it had."""

    commit: str
    turn: int


def turn_of(case: str) -> int:
    """Return the turn that a case has, by its name alone: a new case moves no other one."""
    return TURNS[zlib.crc32(case.encode()) % len(TURNS)]


def chosen(commit: str, landings: Sequence[Landing]) -> int:
    """Return the turn of a commit that comes after these landings; one that landed keeps its own."""
    turns = dict(landings)
    left = sorted({*TURNS} - {*[*turns.values()][1 - len(TURNS) :]})
    return turns.get(commit) or left[int(commit, 16) % len(left)]


def landings_in(text: str, commits: Collection[str]) -> list[Landing]:
    """Return what a record tells of these commits, in its order; a line that is cut off tells nothing."""
    told = (line.partition(" ") for line in text.splitlines())
    known = {str(turn): turn for turn in TURNS}
    return [Landing(commit, known[turn]) for commit, _, turn in told if commit in commits and turn in known]


def _git(*args: str) -> str | None:
    """Return what git says in this folder; None where there is no git, no repository or no commit."""
    argv = ["git", "-C", str(Path(__file__).parent), *args]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _record() -> Path:
    return Path(__file__).parent / (_git("rev-parse", "--git-common-dir") or "") / RECORD


def _choose() -> str:
    """Return the turn of the commit that is checked out, and say on stderr why."""
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        print("all turns: there is no commit here that could choose one; TURN=N takes one", file=sys.stderr)
        return ALL
    text = _record().read_text(encoding="utf-8") if _record().exists() else ""
    landings = landings_in(text, frozenset((_git("rev-list", "HEAD") or "").split()))
    turn = chosen(commit, landings)
    before = ", ".join(f"{landing.commit[:9]} had turn {landing.turn}" for landing in landings[1 - len(TURNS) :])
    why = before or "no landing before it is written down here"
    print(f"turn {turn} of {len(TURNS)} (commit {commit[:9]}; {why}): repeat it with TURN={turn}", file=sys.stderr)
    return str(turn)


def _land(turn: str) -> None:
    commit = _git("rev-parse", "HEAD")
    if commit is not None and turn != ALL:
        with _record().open("a", encoding="utf-8") as record:
            record.write(f"{commit} {turn}\n")


def main() -> None:
    """Print the turn of the commit that is checked out, or write down that it has landed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--landed", choices=CHOICES, help="the turn with which it has passed")
    landed = parser.parse_args().landed
    if landed is None:
        print(_choose())
    else:
        _land(landed)


if __name__ == "__main__":
    main()

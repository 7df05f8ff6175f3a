"""The members of a panel examine a file, each in another way, and vote; the majority of the votes decides.

A member that fails has no vote: "it could not be examined" is not "it is wrong".
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import agentctl

HERE = Path(__file__).resolve().parent
CHECKS = {
    "parses": "Is it valid Python?",
    "documented": "Does it say at its beginning what it is for?",
    "short": "Does it fit a few screens?",
}


def panel(file: Path, *, real: bool) -> list[dict[str, Any]]:
    """Return the members' tasks."""
    members = []
    for name, question in CHECKS.items():
        if real:
            work = {"subagent_type": "plan", "context": {"file": str(file), "answer": "yes or no, nothing else"}}
        else:
            work = {"argv": [sys.executable, str(HERE / "stand_in.py"), "verify", name, str(file)]}
        members.append({"objective": question, "name": name, **work})
    return members


def vote_of(result: agentctl.TaskResult) -> str:
    """Return a member's vote: yes, no or none."""
    words = (result.result or "").strip().lower().split()
    is_vote = result.status == "completed" and words and words[-1].strip(".") in ("yes", "no")
    return words[-1].strip(".") if is_vote else "none"


async def decide(file: Path, *, real: bool) -> int:
    """Let the panel vote; return 0 if it accepts the file, 1 if it rejects it, 2 if nobody could vote."""
    task = agentctl.Task.create("Verification panel")
    async with agentctl.TaskExecutor(task) as executor:
        results = await executor.execute_parallel(panel(file, real=real), timeout_seconds=300)
    votes = Counter(map(vote_of, results))
    for result in results:
        print(f"{result.task_id}: {vote_of(result)}", *([f"({result.error})"] if result.error else []))
    if not votes["yes"] + votes["no"]:
        return 2
    is_good = votes["yes"] > votes["no"]
    print(
        f"{'accepted' if is_good else 'rejected'}: {votes['yes']} yes, {votes['no']} no, {votes['none']} without a vote"
    )
    return 0 if is_good else 1


def main() -> int:
    """Run the example from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=Path(__file__))
    parser.add_argument("--agents", action="store_true", help="real agents instead of the stand-in")
    options = parser.parse_args()
    return asyncio.run(decide(options.file.resolve(), real=options.agents))


if __name__ == "__main__":
    sys.exit(main())

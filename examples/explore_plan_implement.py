"""Explore, then plan, then implement: three workers, each of which starts when the one before it has completed.

The queue keeps the order, not this script: if the script is killed, the steps go on. If a step fails, those after it
end as `failed`, reason `dependency`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import agentctl

HERE = Path(__file__).resolve().parent
STAND_IN = [sys.executable, str(HERE / "stand_in.py")]


def begin(task: agentctl.Task, folder: Path, out: Path, *, real: bool) -> None:
    """Put all three steps into the queue."""
    if real:
        read = "Read what came before with `agentctl result"
        task.spawn(f"Where in {folder} is something still to be done?", agent="explore", name="explore", queue=True)
        task.spawn(f"{read} explore`, and plan how to do it.", agent="plan", name="plan", after=["explore"])
        task.spawn(f"{read} plan`, and write the plan to {out}.", agent="general", name="implement", after=["plan"])
    else:
        task.spawn(argv=[*STAND_IN, "find", "TO" + "DO|FIXME|def ", str(folder)], name="explore", queue=True)
        task.spawn(argv=[*STAND_IN, "plan", "explore"], name="plan", after=["explore"])
        task.spawn(argv=[*STAND_IN, "implement", "plan", str(out)], name="implement", after=["plan"])


def main() -> int:
    """Queue the steps, wait for all of them, and print each one's status and result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--out", type=Path, default=Path("PLAN.md"))
    parser.add_argument("--agents", action="store_true", help="real agents instead of the stand-in")
    options = parser.parse_args()
    task = agentctl.Task.create("Explore, plan, implement")
    begin(task, options.folder.resolve(), options.out.resolve(), real=options.agents)
    ends = task.wait("explore", "plan", "implement", timeout_seconds=3600)
    for end in ends:
        print(f"## {end.agent_instance}: {end.status}", task.result(end.agent_instance)["text"], sep="\n")
    return 0 if all(end.status == "completed" for end in ends) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Three explorers search a source tree at once; each finding is shown, with its explorer's name, when it arrives."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import agentctl

HERE = Path(__file__).resolve().parent
QUESTIONS = {
    "functions": ("Which functions are there?", r"^def "),
    "coroutines": ("Where are coroutines defined?", r"^\s*async def "),
    "starts": ("Where are workers started?", r"execute_parallel|stream\(|spawn\("),
}


def explorations(folder: Path, *, real: bool) -> list[dict[str, Any]]:
    """Return a task for each question: for the agent `explore`, or for the program that stands in for it."""
    items = []
    for name, (objective, pattern) in QUESTIONS.items():
        if real:
            work = {"subagent_type": "explore", "context": {"folder": str(folder)}}
        else:
            work = {"argv": [sys.executable, str(HERE / "stand_in.py"), "find", pattern, str(folder)]}
        items.append({"objective": objective, "name": name, **work})
    return items


async def explore(folder: Path, *, real: bool) -> int:
    """Run the explorers and print their answers; return 0 if all of them completed."""
    failed = 0
    task = agentctl.Task.create("Exploration", max_concurrent_agents=3)
    async with agentctl.TaskExecutor(task) as executor:
        async for result in executor.stream(explorations(folder, real=real), timeout_seconds=600):
            print(f"## {result.objective} ({result.task_id}, {result.duration:.1f} s)", result.result, "", sep="\n")
            if result.status != "completed":
                print(f"{result.task_id} {result.status}: {result.error}", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


def main() -> int:
    """Run the example from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--agents", action="store_true", help="real agents instead of the stand-in")
    options = parser.parse_args()
    return asyncio.run(explore(options.folder.resolve(), real=options.agents))


if __name__ == "__main__":
    sys.exit(main())

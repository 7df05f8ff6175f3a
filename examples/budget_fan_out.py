"""More work than the budget allows: what fits is done, and the rest is refused, with the figures.

The limit belongs to the task (`maxWorkers`, or `maxCostUsd` with real agents) and includes everything below it, no
matter who starts it and how. Each start is reserved before it happens, so starts at the same time cannot exceed it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import agentctl

HERE = Path(__file__).resolve().parent
TOPICS = ("import", "class", "def", "return", "raise", "async", "yield", "assert")


def searches(folder: Path, *, real: bool) -> list[dict[str, Any]]:
    """Return a search for each topic."""
    items = []
    for topic in TOPICS:
        if real:
            work = {"subagent_type": "explore", "context": {"folder": str(folder)}}
        else:
            work = {"argv": [sys.executable, str(HERE / "stand_in.py"), "find", rf"\b{topic}\b", str(folder)]}
        items.append({"objective": f"Where is `{topic}` used best?", **work})
    return items


async def fan_out(folder: Path, most: int, *, real: bool) -> int:
    """Start all searches at once; return 0 if any was done within the budget."""
    limits = {"max_cost_usd": most / 10} if real else {"max_workers": most}
    task = agentctl.Task.create("Fan-out with a budget", max_concurrent_agents=4, **limits)
    async with agentctl.TaskExecutor(task) as executor:
        results = await executor.execute_parallel(searches(folder, real=real), timeout_seconds=300)
    done = [result for result in results if result.status == "completed"]
    for result in results:
        print(f"{result.objective} {result.status}" + (f": {result.error}" if result.error else ""))
    print(f"{len(done)} of {len(results)} done within the budget")
    return 0 if done else 1


def main() -> int:
    """Run the example from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument(
        "--most", type=int, default=5, help="how many workers may be started (a tenth of a dollar each)"
    )
    parser.add_argument("--agents", action="store_true", help="real agents instead of the stand-in")
    options = parser.parse_args()
    return asyncio.run(fan_out(options.folder.resolve(), options.most, real=options.agents))


if __name__ == "__main__":
    sys.exit(main())

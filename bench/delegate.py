"""Runs children in one of three ways, and prints how many milliseconds that took: `delegate.py HOW COUNT CAP SECONDS`.

HOW is `executor` (agentctl.TaskExecutor), `asyncio` (its subprocesses behind a semaphore) or `child` (subprocess.run).
Each child sleeps for SECONDS. Everything is imported, and one child has been run, before the clock starts.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import agentctl


async def by_executor(argv: list[str], count: int, cap: int) -> float:
    """Run children through `execute_parallel`; return the milliseconds."""
    task = agentctl.Task.create("bench", max_concurrent_agents=cap)
    async with agentctl.TaskExecutor(task) as executor:
        await executor.execute_task("warm up", argv=["true"])
        began = time.perf_counter()
        results = await executor.execute_parallel([{"objective": "x", "argv": argv} for _ in range(count)])
        ms = (time.perf_counter() - began) * 1000
    assert all(result.status == "completed" for result in results), results
    return ms


async def by_asyncio(argv: list[str], count: int, cap: int) -> float:
    """Run children as asyncio's subprocesses; return the milliseconds."""
    semaphore = asyncio.Semaphore(cap)

    async def one(command: list[str]) -> None:
        async with semaphore:
            process = await asyncio.create_subprocess_exec(*command)
            assert await process.wait() == 0

    await one(["true"])
    began = time.perf_counter()
    await asyncio.gather(*[one(argv) for _ in range(count)])
    return (time.perf_counter() - began) * 1000


async def by_child(argv: list[str], count: int, _cap: int) -> float:
    """Run children one after the other, with nothing around them; return the milliseconds."""
    subprocess.run(["true"], check=True)  # noqa: ASYNC221  there is nothing else to do meanwhile
    began = time.perf_counter()
    for _ in range(count):
        subprocess.run(argv, check=True)  # noqa: ASYNC221
    return (time.perf_counter() - began) * 1000


HOW: dict[str, Callable[[list[str], int, int], Awaitable[float]]] = {
    "executor": by_executor,
    "asyncio": by_asyncio,
    "child": by_child,
}


async def main() -> None:
    """Measure once."""
    how, count, cap, seconds = sys.argv[1:]
    argv = ["sleep", seconds] if float(seconds) else ["true"]
    print(await HOW[how](argv, int(count), int(cap)))


if __name__ == "__main__":
    asyncio.run(main())

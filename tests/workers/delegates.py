"""A parent in Python: delegates one command to a child through `agentctl.TaskExecutor`, and prints its result as JSON.

delegates.py --timeout-seconds 60 -- CMD ARGS...
Prints `stopped: WHY` and exits with 9 where its wait is ended from outside.
"""

from __future__ import annotations

import argparse
import asyncio
import json

import agentctl
import bounded


async def delegate(argv: list[str], timeout_seconds: float) -> None:
    """Run the child, and tell of it."""
    async with agentctl.TaskExecutor() as executor:
        bounded.say("ready")
        result = await executor.execute_task("the child", argv=argv, name="child", timeout_seconds=timeout_seconds)
    bounded.say(json.dumps(result.to_json()))


def main() -> None:
    """Delegate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timeout-seconds", type=float, default=60)
    parser.add_argument("argv", nargs="+")
    options = parser.parse_args()
    bounded.live_at_most()
    try:
        asyncio.run(delegate(options.argv, options.timeout_seconds))
    except agentctl.WaitStopped as stopped:
        bounded.say(f"stopped: {stopped.stopped}")
        raise SystemExit(9) from None


if __name__ == "__main__":
    main()

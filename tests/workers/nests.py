"""Starts COUNT agentctl workers of its own, each nesting one level less, and waits for all of them.

At DEPTH 0 it is a leaf: it prints `leaf` and ends, with --leaf-waits-for FILE once that file is there. With
--file FILE the instances that were started are written there. Exits with 7 if one of them did not complete.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import bounded

AGENTCTL = (sys.executable, "-m", "agentctl")


def main() -> None:
    """Be a leaf or a parent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("depth", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--leaf-waits-for", metavar="FILE")
    parser.add_argument("--file", metavar="FILE", help="where the names of the children are written")
    options = parser.parse_args()
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    if options.depth == 0:
        be_leaf(options.leaf_waits_for)
    else:
        be_parent(options.depth, options.count, options.leaf_waits_for, options.file)


def be_leaf(waits_for: str | None) -> None:
    """Hold a slot for as long as is asked."""
    if waits_for is not None:
        bounded.wait_for_file(waits_for)
    bounded.say("leaf")


def be_parent(depth: int, count: int, leaf_waits_for: str | None, file: str | None) -> None:
    """Start all children, then wait for each."""
    child = [sys.executable, __file__, str(depth - 1), str(count)]
    if leaf_waits_for is not None:
        child += ["--leaf-waits-for", leaf_waits_for]
    instances = [spawn(child) for _ in range(count)]
    if file is not None:
        bounded.publish(file, instances)
    bounded.say(f"started: {' '.join(instances)}")
    codes = [subprocess.run([*AGENTCTL, "wait", instance], check=False).returncode for instance in instances]
    bounded.say(f"ended: {codes}")
    raise SystemExit(7 if any(codes) else 0)


def spawn(child: list[str]) -> str:
    """Start one worker, queued where there is no slot, and return its instance."""
    command = [*AGENTCTL, "spawn", "--json", "--queue", "--", *child]
    spawned = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if spawned.returncode != 0:
        raise SystemExit(spawned.returncode)
    return str(json.loads(spawned.stdout)["agentInstance"])


if __name__ == "__main__":
    main()

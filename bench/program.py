"""Measure agentctl and what it is compared with, and print one table.

Every figure is measured in alternation with what it is compared with, so that noise affects both; all files are in
temporary folders, and nothing is left running.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import (
    answering,
    batches,
    browsing,
    cancelling,
    delegating,
    firstword,
    guarding,
    listing,
    paging,
    painting,
    placing,
    plain_models,
    serving,
    starting,
    treeing,
    waiting,
    watching,
)
from bench.ground import Ground, busy_percent
from bench.measuring import BenchError, Found, Rounds
from bench.table import draw

FIGURES: dict[int, Callable[[Ground, Rounds], Found]] = {
    1: starting.measure_spawn,
    2: waiting.measure_wait,
    3: listing.measure_list,
    4: batches.measure_batch,
    5: starting.measure_late_spawn,
    6: guarding.measure_memory,
    7: cancelling.measure_cancel,
    8: answering.measure_answer,
    9: answering.measure_driver,
    10: treeing.measure_tree,
    11: delegating.measure_delegation,
    12: delegating.measure_fan_out,
    13: serving.measure_wake,
    14: serving.measure_subtask,
    15: firstword.measure_first_word,
    16: paging.measure_pager,
    17: watching.measure_drawing,
    18: watching.measure_keys,
    19: watching.measure_processor,
    20: watching.measure_size,
    21: browsing.measure_arrival,
    22: browsing.measure_task,
    23: browsing.measure_start,
    24: browsing.measure_memory,
    25: browsing.measure_cost,
    26: placing.measure_start,
    27: placing.measure_wake,
    28: placing.measure_head,
    29: answering.measure_acp_driver,
    30: plain_models.measure_memory,
    31: plain_models.measure_start,
    33: listing.measure_join,
    32: cancelling.measure_queue,
    34: painting.measure_first_rows,
}
ROUNDS = {
    "default": Rounds(),
    "quick": Rounds(usual=5, waits=20, batches=2),
    "full": Rounds(batches=15, waits=300),
}
#: Above this, other work slows a program on one processor differently from a program on all of them.
_QUIET_PERCENT = 15


def main() -> int:
    """Run the chosen figures; return 0 even if a goal is missed, 1 if something could not be measured."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = Found()
    ground = Ground()
    failures: list[str] = []
    try:
        for number in options.only or FIGURES:
            failures += _measure(number, ground, ROUNDS[options.rounds], found)
    except KeyboardInterrupt:
        failures.append("interrupted: the figures missing above were not measured")
    finally:
        left = ground.close()
    print(_conditions(ground), draw(found), sep="\n\n")
    failures += [f"left running, now killed: {process}" for process in left]
    print(*(f"error: {failure}" for failure in failures), sep="\n", end="\n" if failures else "", file=sys.stderr)
    if options.json is not None:
        Path(options.json).write_text(json.dumps(_document(ground, found, failures), indent=1), encoding="utf-8")
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__)
    parser.add_argument(
        "--only",
        type=int,
        action="append",
        choices=FIGURES,
        metavar="N",
        help=f"measure only this figure, 1 to {max(FIGURES)}; repeatable",
    )
    length = parser.add_mutually_exclusive_group()
    for name, text in (("quick", "5 rounds"), ("full", "15 rounds of figure 4 too, 300 of figure 2")):
        length.add_argument(f"--{name}", dest="rounds", action="store_const", const=name, help=text)
    parser.add_argument("--json", metavar="FILE", help="write every single value to this file")
    parser.set_defaults(rounds="default")
    return parser.parse_args()


def _measure(number: int, ground: Ground, rounds: Rounds, found: Found) -> list[str]:
    """Measure one figure and add it to `found`; return the reasons if it could not be measured."""
    busy = busy_percent()
    if busy > _QUIET_PERCENT:
        found.notes.append(f"{number}: the machine was {busy:.0f} % busy with other work at the beginning: try again")
    began = time.monotonic()
    print(f"figure {number} ...", end=" ", file=sys.stderr, flush=True)
    try:
        found += FIGURES[number](ground, rounds)
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        print("failed", file=sys.stderr)
        return [f"figure {number}: {error}"]
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)
    return []


def _conditions(ground: Ground) -> str:
    return (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} processors; "
        f"Python {platform.python_version()}; {' '.join(ground.program)}"
    )


def _document(ground: Ground, found: Found, failures: list[str]) -> dict[str, Any]:
    return {
        "conditions": _conditions(ground),
        "rows": [row.to_json() for row in found.rows],
        "notes": found.notes,
        "notFound": found.missing,
        "failures": failures,
    }

"""Rebuilds the activity of an agent, from its raw output and the other inputs of its dialogue."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, BinaryIO

from agentctl.adapters.opening import ODD_HINT, OddFile, open_plain
from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.activity.row import encode_row
from agentctl.drivers.dialogue import Action, Dialogue, Driver, Note
from agentctl.drivers.order import Order, changed_order
from agentctl.worker_programs.agent_host.host_rows import again_row, home_rows, policy_row
from agentctl.worker_programs.agent_host.main import order_and_driver

Input = dict[str, Any]
#: No agent program prints a longer line.
_LONGEST = 64 << 20
#: No file is larger.
_LARGEST = (1 << 63) - 1


def replay(worker: WorkerDir) -> Iterator[bytes]:
    """Yield the lines of `activity.jsonl` that result from the worker's output.

    Raises:
        Damaged: The worker is not an agent, or its files hold a line that is too long.
    """
    order, driver = order_and_driver(worker)
    runs = list(_runs(_inputs(worker)))
    with os.fdopen(open_plain(worker.stdout), "rb") as output:
        for run, following in pairwise([*runs, []]):
            end = following[0]["offset"] if following else None
            yield from _replay_run(output, worker.stdout, driver, order, run, end)


def _inputs(worker: WorkerDir) -> Iterator[Input]:
    with os.fdopen(open_plain(worker.dialogue), "rb") as lines:
        while line := _line_of(lines, worker.dialogue):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue  # A torn last line, or one that the worker wrote.
            if isinstance(value, dict) and _is_input(value):
                yield value


def _is_input(value: Input) -> bool:
    """Return whether this can be an input of a dialogue: the worker may have written anything there."""
    offset = value.get("offset")
    return type(offset) is int and 0 <= offset <= _LARGEST and isinstance(value.get("policy", {}), dict)


def _line_of(stream: BinaryIO, path: str, most: int | None = None) -> bytes:
    """Return the next line, or its first `most` bytes if it is longer."""
    line = stream.readline(_LONGEST if most is None else min(most, _LONGEST))
    if len(line) == _LONGEST:
        raise OddFile(f"{path} holds a line of more than {_LONGEST} bytes", hint=ODD_HINT)
    return line


def _runs(inputs: Iterable[Input]) -> Iterator[list[Input]]:
    """Yield the inputs of each run of the program: every attempt starts a new one."""
    run: list[Input] = []
    for value in inputs:
        if value.get("what") == "begin" and run:
            yield run
            run = []
        run.append(value)
    if run:
        yield run


def _replay_run(
    output: BinaryIO, path: str, driver: Driver, order: Order, run: list[Input], end: int | None
) -> Iterator[bytes]:
    order = changed_order(order, run[0])
    if type(run[0].get("again")) is int:
        yield encode_row(again_row(order, run[0]["again"]), str(run[0].get("at")))
    yield from (encode_row(row, str(run[0].get("at"))) for row in home_rows(order))
    dialogue, offset, at = driver.dialogue(order), int(run[0]["offset"]), str(run[0].get("at"))
    output.seek(offset)
    read = partial(_line_of, output, path)
    for value in run:
        while offset < value["offset"] and (line := read(value["offset"] - offset)):
            offset += len(line)
            yield from _rows(dialogue.received(line.rstrip(b"\r\n")), at)
        at = str(value.get("at"))
        if value.get("what") == "answered" and "policy" in value:
            yield encode_row(policy_row(str(value.get("key")), value["policy"]), at)
        yield from _rows(_repeat(dialogue, value), at)
    # A program that was cut off leaves half a line, and the first line of the next run follows directly behind it.
    while (end is None or offset < end) and (line := read(None if end is None else end - offset)):
        offset += len(line)
        yield from _rows(dialogue.received(line.rstrip(b"\r\n")), at)


def _repeat(dialogue: Dialogue, value: Input) -> Iterable[Action]:
    match value.get("what"):
        case "begin":
            return dialogue.begin()
        case "answered":
            return dialogue.answered(
                str(value.get("key")), str(value.get("answer")), str(value.get("reason") or ""),
                by_rule="policy" in value,
            )  # fmt: skip
        case "told":
            return dialogue.told(str(value.get("text")), interrupt=bool(value.get("interrupt")))
        case "interrupted":
            return dialogue.interrupted()
    return ()


def _rows(actions: Iterable[Action], at: str) -> Iterator[bytes]:
    for action in actions:
        if isinstance(action, Note):
            yield encode_row(action.row, at)

"""At stake: Ctrl-C during a wait is never anything else, wherever it strikes, and loses no end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.steps import held, new_task, spawn, spawn_batch
from tests.support import run, start_argv

#: Runs a call in one child process after the other, each interrupted one line of ours later than the one before, until
#: one is through. Each prints how it ended, and which ends it was given.
INTERRUPTER = """
import os, sys, traceback
import agentctl
from agentctl.errors import NothingLeft, WaitTimedOut
from agentctl.operations.where.locating import find_task
from agentctl.operations.wait.waiting import next_end, wait_all

OURS, kind = os.path.dirname(agentctl.__file__), sys.argv[1]
task = find_task(None)

def call(consumer):
    given = []
    try:
        if kind == 'all':
            wait_all(task, ['held'], timeout_s=0.01)
        else:
            with next_end(task, ['ended'], timeout_s=0.01, consumer=consumer, kinds=None) as end:
                given.append('again' if end.redelivered else 'first')
        outcome = 'through'
    except KeyboardInterrupt:
        outcome = 'interrupted'
    except (NothingLeft, WaitTimedOut):
        outcome = 'through'
    except BaseException:
        outcome = traceback.format_exc().replace(chr(10), ' | ')
    sys.settrace(None)
    return outcome, given

passed = 0

def interrupt_at(wanted):
    def trace(frame, event, _value):
        global passed
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == 'line':
            passed += 1
            if passed == wanted:
                raise KeyboardInterrupt
        return trace
    sys.settrace(trace)

line, outcome = 1, ''
while outcome != 'through':
    receive, give = os.pipe()
    if (child := os.fork()) == 0:
        interrupt_at(line)
        outcome, given = call(f'c{line}')
        if outcome == 'through' and passed >= line:
            outcome = 'swallowed'
        os.write(give, '\\t'.join([outcome, *given]).encode())
        os._exit(0)
    os.close(give)
    with open(receive) as stream:
        outcome, *given = stream.read().split('\\t')
    os.waitpid(child, 0)
    if kind == 'any':
        given += call(f'c{line}')[1]
    print(line, outcome, *given, sep='\\t', flush=True)
    line += 1
"""


def outcomes(kind: str) -> list[list[str]]:
    """Return of each call its line, its outcome, and how its end was given, by it or by the next call."""
    process = start_argv([sys.executable, "-c", INTERRUPTER, kind])
    out, err = process.communicate(timeout=900)
    assert (process.returncode, err) == (0, "")
    return [line.split("\t") for line in out.splitlines()]


@pytest.mark.soak
def test_a_wait_that_is_interrupted_says_nothing_else(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "held")])
    task.has("agent.started", "held")
    found = outcomes("all")
    (tmp_path / "gate").touch()
    task.ended("held")
    assert [outcome for _, outcome in found] == ["interrupted"] * (len(found) - 1) + ["through"]


@pytest.mark.soak
def test_an_end_is_given_though_its_wait_is_interrupted(root: Path) -> None:
    new_task()
    spawn(["true"], "--wait", name="ended")
    found = outcomes("any")
    assert {outcome for _, outcome, *_ in found} == {"interrupted", "through"}
    assert {tuple(given) for _, _, *given in found} <= {("first",), ("again",), ("first", "again")}
    assert run("wait-any", check=False).code == 0

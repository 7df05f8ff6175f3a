"""At stake: limits go by what was measured, whatever the wall clock says; a clock stands still only for who waits."""

from __future__ import annotations

import calendar
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.paths import FilePath
from agentctl.domain.tree.windows import Window
from agentctl.supervision.account import accounts, holds
from agentctl.supervision.account.accounts import Account
from tests.agent_steps import agent, agent_world, ends, plays
from tests.life import is_settled, kill_shims, leader_of, lives, passes, says_ready, set_config
from tests.steps import Task, new_task, spawn, statuses
from tests.support import alike, run, wait_until, worker

LIMIT_S = 4.0  # a busy machine needs time to ask within it
ASK = f"{sys.executable} -m agentctl interact ask --kind confirm 'Go?'"
TWO_HOURS_S = 7200


# -- a clock stands still only for who truly waits ---------------------------------------------------------------------

BUSY = "while True: pass"
#: Waits a moment for its input, and does a little, again and again.
LOOKS = "import select; [(select.select([0], [], [], 0.3), open('/dev/null', 'a').write('.')) for _ in range(200)]"
#: Says that it waits for an answer itself, and works at 4.5 % of a processor.
FORGES = """
import fcntl, json, os, struct, time
folder = os.environ['AGENTCTL_AGENT_DIR']
asked = os.path.join(folder, 'interactions', 'q1')
os.makedirs(os.path.dirname(asked), exist_ok=True)
with open(os.path.join(folder, 'worker.json')) as file:
    me = json.load(file)
lock = os.open(asked + '.lock', os.O_RDWR | os.O_CREAT, 0o600)
fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack('hhqqi0q', fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
with open(asked + '.json', 'w') as file:
    json.dump({'id': 'q1', 'kind': 'confirm', 'question': 'Go?', 'asker': me}, file)
os.system('echo > ' + os.path.join(folder, 'control'))
while True:
    until = time.process_time() + 0.045
    while time.process_time() < until: pass
    time.sleep(0.955)
"""
AT_WORK = {
    "reader": f"{ASK} | sh -c 'while :; do echo tick > /dev/null; sleep 0.3; done'",
    "looks": f'{ASK} | {sys.executable} -c "{LOOKS}"',
    "beside": f"{ASK} & sleep 60",
    "busy": f"{ASK} & exec {sys.executable} -c '{BUSY}'",
    "daemon": f"setsid sleep 60 & exec {ASK}",
    "below": f"sleep 60 & exec {ASK}",
    "piped": f"sleep 60 | {ASK}",
    "pokes": f"{ASK} & while sleep 0.2; do echo > $AGENTCTL_AGENT_DIR/control; done",
}


@pytest.mark.slow
@pytest.mark.parametrize("line", AT_WORK)
def test_a_question_in_the_background_stops_no_time_limit(root: Path, line: str) -> None:
    task = new_task(grace=0.1)
    spawn(["sh", "-c", AT_WORK[line]], "--timeout-seconds", str(LIMIT_S), name="a")
    task.has("agent.blocked", "a")
    assert statuses() == {"a": "blocked"}, "the question is open all the same"
    task.ended("a")
    end = is_settled(task, "a")
    assert (end["status"], end["reason"]) == ("failed", "timed_out")


@pytest.mark.slow
def test_a_question_in_the_background_stops_no_clock_of_the_tree(root: Path) -> None:
    task = new_task(grace=0.1)
    set_config(task, maxWallSeconds=LIMIT_S, graceSeconds=0.1)
    spawn(["sh", "-c", AT_WORK["beside"]], name="a")
    task.has("agent.blocked", "a")
    task.ended("a")
    end = is_settled(task, "a")
    assert (end["status"], end["reason"]) == ("failed", "budget")
    assert run("usage", "--json").json["total"]["wallSeconds"] >= LIMIT_S


@pytest.mark.slow
def test_who_forges_its_own_question_and_works_on_stops_no_time_limit(root: Path) -> None:
    task = new_task(grace=0.1)
    spawn([sys.executable, "-c", FORGES], "--timeout-seconds", "2", name="a")
    task.ended("a")
    assert (task.agent("a") / "interactions" / "q1.lock").exists(), "it has asked"
    assert is_settled(task, "a")["reason"] == "timed_out"


#: Ways to ask and do nothing else meanwhile.
WAITING = {
    "plain": f"{ASK}; echo done",
    "value": f"x=$({ASK}); echo done",
    "piped": f"{ASK} | tee /dev/null | cat; echo done",
    "nested": f"sh -c '{ASK.replace(chr(39), '')}; true'; echo done",
    "several": f"{ASK} & {ASK} & wait; echo done",
}


@pytest.mark.slow
def test_who_waits_may_wait_as_long_as_it_likes(root: Path) -> None:
    task = new_task(cap=len(WAITING) + 1)
    for name, line in WAITING.items():
        spawn(["sh", "-c", line], "--timeout-seconds", "6", name=name)
    spawn(worker("asks", "--kind", "confirm", "Go?"), "--timeout-seconds", "6", name="program")
    for name in (*WAITING, "program"):
        task.has("agent.blocked", name)
    passes(9)
    assert set(statuses().values()) == {"blocked"}
    for name in (*WAITING, "program"):
        run("interact", "respond", name, "--id", "q1", "yes")
    run("interact", "respond", "several", "--id", "q2", "yes")
    task.ended(*WAITING, "program")
    assert set(statuses().values()) == {"completed"}


#: Waits for a permission, and goes on meanwhile: a line now and then, or none.
ASKS = """
import os, time
me.ask("Bash", {"command": "x"}, lambda answer: me.answer("done"))
"""
GOES_ON = "while True:\n    say(type='system', subtype='status')\n    time.sleep(0.5)\n"


@pytest.mark.slow
@pytest.mark.parametrize("goes_on", [GOES_ON, BUSY], ids=["says", "silent"])
def test_an_agent_that_goes_on_while_it_asks_is_at_work(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes_on: str
) -> None:
    task = agent_world(tmp_path, monkeypatch, grace=0.1)
    agent(plays(tmp_path, ASKS + goes_on), "--timeout-seconds", "6", name="a")
    agent(plays(tmp_path, ASKS), "--timeout-seconds", "6", name="b")
    for name in "ab":
        task.has("agent.blocked", name)
    assert ends("a")["reason"] == "timed_out"
    passes(2)
    assert statuses()["b"] == "blocked"
    run("interact", "respond", "b", "--id", "q1", "allow")
    assert ends("b")["status"] == "completed"


@pytest.mark.slow
def test_a_paused_worker_that_somebody_continues_is_at_work(root: Path) -> None:
    """A worker could pause itself, and have a child of its own shim continue it."""
    task = new_task(grace=0.1)
    spawn(worker("sleeps", 60), "--timeout-seconds", str(LIMIT_S), name="a")
    says_ready(task, "a")
    leader = leader_of(task, "a")
    run("pause", "a")

    def is_over() -> bool:
        if task.exit("a") is None and lives(leader):
            os.kill(leader.pid, signal.SIGCONT)
        return task.exit("a") is not None

    wait_until(is_over, what="the time limit")
    task.ended("a")
    assert is_settled(task, "a")["reason"] == "timed_out"


# -- the tree's time goes by what was measured -------------------------------------------------------------------------


def step_the_log(task: Task, seconds: int) -> None:
    """Let all that the log tells so far seem to have been so much earlier: the clock was set, or the machine slept."""

    def earlier(found: re.Match[str]) -> str:
        then = time.strptime(found[1], "%Y-%m-%dT%H:%M:%S")
        moved = time.gmtime(calendar.timegm(then) - seconds)
        return time.strftime('"ts":"%Y-%m-%dT%H:%M:%S', moved)

    log = task.path / "events.jsonl"
    text = re.sub(r'"ts":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)', earlier, log.read_text(encoding="utf-8"))
    with log.open("r+", encoding="utf-8") as stream:  # In place: the log is never replaced.
        stream.write(text)


@pytest.fixture
def limited(root: Path) -> Task:
    """Make a task whose tree may be at work for an hour, with a worker in it."""
    task = new_task()
    set_config(task, maxWallSeconds=3600)
    spawn(worker("sleeps", 60), name="a")
    return task


def test_a_step_of_the_clock_ends_nobody_and_refuses_no_start(limited: Task) -> None:
    step_the_log(limited, TWO_HOURS_S)
    assert run("usage", "--json").json["total"]["wallSeconds"] < 600
    spawn(["true"], name="b")
    limited.ended("b")
    assert statuses() == {"a": "running", "b": "completed"}
    run("cancel", "a")


#: Runs agentctl in a process in which it is two hours later.
LATER = f"""
import sys, time
now, now_ns = time.time, time.time_ns
time.time = lambda: now() + {TWO_HOURS_S}
time.time_ns = lambda: now_ns() + {TWO_HOURS_S} * 10**9
from agentctl.interfaces.cli.app import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_program_with_another_time_counts_the_same(limited: Task) -> None:
    def later(*args: str) -> str:
        done = subprocess.run([sys.executable, "-c", LATER, *args], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert json.loads(later("usage", "--json"))["total"]["wallSeconds"] < 600
    later("spawn", "--name", "b", "--", "true")
    limited.ended("b")
    assert statuses() == {"a": "running", "b": "completed"}
    run("cancel", "a")


@pytest.mark.slow
def test_a_limit_that_is_set_in_mid_run_counts_from_the_start(root: Path) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), name="a")
    assert run("usage", "--json").json["total"]["wallSeconds"] > 0
    wait_until(
        lambda: run("usage", "--json").json["total"]["wallSeconds"], accept=lambda told: told > 1, what="a second"
    )
    set_config(task, maxWallSeconds=1, graceSeconds=0.1)
    run("usage")  # Whoever reads task.yaml tells the shims.
    task.ended("a")
    assert is_settled(task, "a")["reason"] == "budget"
    assert "maxWallSeconds is 1" in run("spawn", "--", "true", check=False).err


@pytest.mark.slow
def test_all_attempts_count_and_the_pauses_between_them_do_not(root: Path) -> None:
    task = new_task()
    argv = [sys.executable, "-c", "import time; time.sleep(0.5); raise SystemExit(3)"]
    spawn(argv, "--retries", "2", "--retry-delay-seconds", "1", name="a")
    task.ended("a")
    told = run("usage", "--json").json["total"]["wallSeconds"]
    spans = (task.exit("a") or {})["worked"]["spans"]
    assert len(spans) == 3
    # The pause of 1 s is spread by a quarter.
    assert min(begin - end for (_, end), (begin, _) in pairwise(spans)) >= 0.7
    assert told == pytest.approx(sum(end - begin for begin, end in spans), abs=0.01)


@pytest.mark.slow
def test_what_nobody_measured_does_not_count(limited: Task) -> None:
    kill_shims(limited, "a")
    assert run("usage", "--json").json["total"]["wallSeconds"] == 0
    run("cancel", "a")
    assert run("usage", "--json").json["total"]["wallSeconds"] == 0


def measured_by(value: Any) -> bytes:
    """What a worker could write in place of its shim."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()


FORGED: dict[str, Callable[[str], Any]] = {
    "text": lambda _boot: b"what?",
    "list": lambda _boot: [1],
    "no numbers": lambda boot: {"boot": boot, "spans": [["a", None]], "since": "x"},
    "infinite": lambda boot: b'{"boot": "%s", "spans": [[0, Infinity], [NaN, 1]]}' % boot.encode(),
    "huge": lambda boot: b'{"boot": "%s", "spans": [[0, 1%s]]}' % (boot.encode(), b"0" * 400),
    "negative": lambda boot: {"boot": boot, "spans": [[-1e9, 0]], "since": -1e9},
    "future": lambda boot: {"boot": boot, "spans": [[0, 1e12]]},
    "many": lambda boot: {"boot": boot, "spans": [[0, 0.001]] * 10_001},
}


@pytest.mark.parametrize("forged", ["future", *alike(*(name for name in FORGED if name != "future"))])
def test_a_forged_file_counts_nothing_and_harms_nobody(limited: Task, forged: str) -> None:
    boot = json.loads((limited.agent("a") / "worker.json").read_bytes())["boot"]
    (limited.agent("a") / "worked.json").write_bytes(measured_by(FORGED[forged](boot)))
    assert run("usage", "--json").json["total"]["wallSeconds"] < 60
    spawn(["true"], name="b")
    limited.ended("b")
    assert statuses() == {"a": "running", "b": "completed"}
    run("cancel", "a")


@pytest.mark.slow
def test_a_worker_cannot_hide_its_time_from_its_own_shim(root: Path) -> None:
    task = new_task(grace=0.1)
    set_config(task, maxWallSeconds=2, graceSeconds=0.1)
    hides = "while :; do echo '{}' > $AGENTCTL_AGENT_DIR/worked.json; sleep 0.1; done"
    spawn(["sh", "-c", hides], name="a")
    task.ended("a")
    assert is_settled(task, "a")["reason"] == "budget"


# -- what holds somebody for a while -----------------------------------------------------------------------------------


def account_in(folder: Path, name: str = "claude-1") -> Account:
    return Account(name, FilePath(str(folder)))


def step(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the wall clock of this process."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)


def left(account: Account) -> float:
    hold = holds.held_now(account)
    return hold.left_s if hold is not None else 0.0


@pytest.mark.parametrize("step_s", [-TWO_HOURS_S, -1000, 1000, TWO_HOURS_S])
def test_an_account_is_left_alone_for_as_long_as_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: int
) -> None:
    holds.back_off(account_in(tmp_path), 2000)
    step(monkeypatch, step_s)
    assert left(account_in(tmp_path)) == pytest.approx(2000, abs=60)
    assert left(account_in(tmp_path, "claude-2")) == 0


@pytest.mark.parametrize(
    ("step_s", "expected"), [(-365 * 86_400, 2000), (-TWO_HOURS_S, 2000), (1000, 1000), (TWO_HOURS_S, 0)]
)
def test_a_window_is_over_when_the_world_says_so_and_holds_nobody_longer_than_it_was_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: int, expected: float
) -> None:
    account = account_in(tmp_path)
    holds.tell(account, [Window("five_hour", 100, time.time() + 2000, is_rejected=True)])
    step(monkeypatch, step_s)
    assert left(account) == pytest.approx(expected, abs=60)


def test_a_window_holds_over_a_restart_of_the_machine(tmp_path: Path) -> None:
    account = account_in(tmp_path)
    holds.tell(account, [Window("five_hour", 100, time.time() + 2000, is_rejected=True)])
    told = json.loads((tmp_path / "claude-1.json").read_bytes())
    (tmp_path / "claude-1.json").write_text(json.dumps({**told, "boot": "another", "sinceBoot": 1}), encoding="utf-8")
    assert left(account) == pytest.approx(2000, abs=60)


def test_an_instant_of_another_boot_holds_nobody(tmp_path: Path) -> None:
    told = {"backOff": {"boot": "another", "until": 1e12, "seconds": 3600}}
    (tmp_path / "claude-1.json").write_text(json.dumps(told), encoding="utf-8")
    (tmp_path / "claude-2.json").write_text('{"until": 1e12}', encoding="utf-8")
    assert [left(account) for account in accounts.all_accounts(FilePath(str(tmp_path)))] == [0, 0]


@pytest.mark.slow
def test_a_breaker_holds_for_as_long_as_it_says_though_the_clock_is_set(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    set_config(task, breakerFailures=1, breakerCooldownSeconds=600)
    agent("crash", name="a")
    ends("a")
    step_the_log(task, TWO_HOURS_S)
    assert "failed 1 times in a row" in agent("say yes", name="b", check=False).err
    (note,) = (task.path / "failures").iterdir()
    told = json.loads(note.read_bytes())
    note.write_text(json.dumps({**told, "at": told["at"] - 601}), encoding="utf-8")
    agent("say yes", name="b")
    assert ends("b")["status"] == "completed"

"""At stake: where the head sees late what its nodes write, as over NFS, nothing is lost, doubled or told wrongly."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import LaunchDir, Root
from agentctl.worker_programs.on_node.calls.called_commands import CalledCommands
from agentctl.worker_programs.on_node.exchange.heartbeat import HeardFrom
from tests.life import is_settled, living, members, passes
from tests.placed import ask_engine, counting, is_whole, launch_of, script
from tests.slurm import delayed_view
from tests.slurm.cluster import Cluster
from tests.slurm.install import why_no_fuse
from tests.slurm.on_nodes import POLL_S, SILENCE_S, SLURM, fill, job_of, says
from tests.slurm.surroundings import own_environ
from tests.steps import new_task, spawn, statuses
from tests.support import PROGRAM, run, start, wait_until, worker

AGENTCTL = " ".join(PROGRAM)
END_S = 10.0


class View:
    """The head's view of a folder in which launches lie; at first it is up to date."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)
        #: The same folder as the nodes see it, which have mounts of their own.
        self.beneath = Path(f"/proc/{cluster.daemon('n1').pid}/root{folder}")
        self._program = subprocess.Popen(
            [sys.executable, "-I", delayed_view.__file__, str(folder)],
            cwd="/",
            env=own_environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._answer() == "mounted"

    def _answer(self) -> str:
        assert self._program.stdout is not None
        return self._program.stdout.readline().strip()

    def is_late(self, seconds: float, part: str = "/", *, lists_anew: bool = False) -> None:
        """Let it be late by this from now on, in folders with this text in their path; `math.inf` is for good."""
        line = f"{seconds} {part} {int(lists_anew)}"
        assert self._program.stdin is not None
        self._program.stdin.write(f"{line}\n")
        self._program.stdin.flush()
        assert self._answer() == line

    def is_up_to_date(self) -> None:
        """Let it show everything from now on."""
        self.is_late(0)

    def on_node(self, path: Path) -> Path:
        """Return where this process finds a file as the nodes see it."""
        return self.beneath / path.relative_to(self.folder)

    def close(self) -> None:
        """Unmount it."""
        self._program.communicate(timeout=END_S)
        is_left = delayed_view.is_mounted(self.folder)
        delayed_view.unmount(self.folder)
        assert not is_left


@pytest.fixture
def view(nodes: Cluster, tmp_path: Path) -> Iterator[View]:
    """The head's view of a folder on which tasks do not lie, but launches."""
    if (reason := why_no_fuse()) is not None:
        pytest.skip(f"no file system of its own: {reason}")
    made = View(tmp_path / "shared", nodes)
    ask_engine("slurm", pollSeconds=POLL_S, silenceSeconds=60, folder=str(made.folder))
    yield made
    made.close()


@pytest.fixture(params=["two seconds late", "as NFS"])
def late(view: View, request: pytest.FixtureRequest) -> View:
    """A view that is late by two seconds; and one that never asks anew by itself, but does when a folder is listed."""
    if request.param == "as NFS":
        view.is_late(math.inf, lists_anew=True)
    else:
        view.is_late(2)
    return view


def steps(*commands: str) -> list[str]:
    """Return a worker that carries out these commands of a shell, one after the other, as far as they succeed."""
    return script(" && ".join(commands))


# -- a life ------------------------------------------------------------------------------------------------------------


def test_questions_messages_commands_and_output_come_through_once_and_in_their_order(
    late: View, tmp_path: Path
) -> None:
    new_task()
    asks, reports = f"{AGENTCTL} interact ask --kind confirm Go?", f"{AGENTCTL} report result --summary fine"
    spawn(steps(asks, f"{AGENTCTL} inbox --wait", f"{AGENTCTL} list | wc -l", reports), *SLURM, name="a")
    spawn(counting(tmp_path / "gate"), *SLURM, name="b")
    spawn(worker("stubborn", tmp_path / "pids"), *SLURM, "--grace-seconds", "0.2", name="c")
    tree = members(tmp_path / "pids")
    assert run("wait-any", "--json").json["status"] == "blocked"
    run("interact", "respond", "a", "--id", "q1", "yes")
    run("send", "a", "one")
    assert run("cancel", "c", "--json").json["cancelled"] is True
    assert living(tree.values()) == []
    (tmp_path / "gate").touch()
    run("wait", "a", "b", check=False)
    said = run("logs", "a").out.split()
    assert (said[0], said[-2:]) == ("yes", ["one", "3"])
    assert run("result", "a", "--json").json["summary"] == "fine"
    assert is_whole(run("logs", "b").out)
    assert statuses() == {"a": "completed", "b": "failed", "c": "cancelled"}


def test_an_end_is_told_once_all_is_seen_that_the_node_has_written_before(
    nodes: Cluster, view: View, tmp_path: Path
) -> None:
    task, gate = new_task(), tmp_path / "gate"
    waits = f"until test -e {gate}; do sleep 0.05; done"
    spawn(steps("echo begun", f"({waits})", f"{AGENTCTL} report result --summary fine"), *SLURM, name="a")
    wait_until(lambda: run("logs", "a").out, what="its first line")
    view.is_late(math.inf, "/node/")
    gate.touch()
    wait_until((launch_of(task, "a") / "ended.json").exists, what="its end to be seen")
    job_of(nodes, task, "a", "COMPLETED")
    passes(2 * POLL_S)
    assert statuses() == {"a": "running"}
    view.is_up_to_date()
    run("wait", "a")
    assert run("result", "a", "--json").json["summary"] == "fine"


# -- its end, which is seen late ---------------------------------------------------------------------------------------


def test_an_end_that_is_seen_long_after_slurm_has_told_a_failure_counts(
    nodes: Cluster, view: View, tmp_path: Path
) -> None:
    task, gate = new_task(), tmp_path / "gate"
    spawn(script(f"until test -e {gate}; do sleep 0.05; done; exit 3"), *SLURM, name="a")
    task.has("agent.placed", "a")
    view.is_late(math.inf)
    gate.touch()
    job_of(nodes, task, "a", "FAILED")
    assert view.on_node(launch_of(task, "a") / "ended.json").exists()
    assert not (launch_of(task, "a") / "ended.json").exists()
    says("a", state="ended", words="FAILED")
    passes(3 * POLL_S)  # Slurm has said it twice, and long enough apart.
    assert statuses() == {"a": "running"}
    view.is_up_to_date()
    run("wait", "a", check=False)
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"], ended["exitCode"]) == ("failed", "exit_code", 3)


def test_one_whose_claim_is_seen_only_after_it_was_killed_is_lost_and_not_waited_for(
    nodes: Cluster, view: View, tmp_path: Path
) -> None:
    """As long as no claim is seen, it looks as if it had never begun."""
    ask_engine("slurm", pollSeconds=POLL_S, silenceSeconds=SILENCE_S, folder=str(view.folder))
    task, blocker = new_task(), fill(nodes)
    spawn(worker("stubborn", tmp_path / "pids"), *SLURM, name="a")
    job_of(nodes, task, "a", "PENDING")
    view.is_late(math.inf)
    nodes.run("scancel", blocker)
    members(tmp_path / "pids")  # Nobody starts anybody any more.
    claim = launch_of(task, "a") / "claim.json"
    assert view.on_node(claim).exists()
    ones = [process for node in nodes.nodes for process in nodes.tasks(node)]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # None may tell how another one has ended.
        for one in ones:
            os.kill(one.pid, number)
    job_of(nodes, task, "a", "FAILED")
    says("a", state="ended", words="FAILED")
    passes(4 * POLL_S)
    assert not claim.exists()
    assert statuses() == {"a": "queued"}
    view.is_up_to_date()
    run("wait", "a", check=False)
    assert is_settled(task, "a")["reason"] == "lost"


# -- the claim ---------------------------------------------------------------------------------------------------------


def test_a_cancel_of_one_that_a_node_has_claimed_unseen_is_told_once_the_node_has_proven_it(
    nodes: Cluster, view: View, tmp_path: Path
) -> None:
    task, blocker = new_task(), fill(nodes)
    spawn(worker("stubborn", tmp_path / "pids"), *SLURM, "--grace-seconds", "0.2", name="a")
    job_of(nodes, task, "a", "PENDING")
    view.is_late(math.inf)
    nodes.run("scancel", blocker)
    tree = members(tmp_path / "pids")
    claim, ended = (view.on_node(launch_of(task, "a") / name) for name in ("claim.json", "ended.json"))
    assert (launch_of(task, "a") / "claim.json").exists() is False
    cancel = start("cancel", "a", "--json")
    wait_until(ended.exists, what="the node to end it")
    assert living(tree.values()) == []
    assert json.loads(claim.read_bytes())["node"] in nodes.nodes
    assert task.exit("a") is None, "the head has not withdrawn it"
    view.is_up_to_date()
    assert json.loads(cancel.communicate()[0])["cancelled"] is True
    told = is_settled(task, "a")
    assert (told["status"], told.get("message")) == ("cancelled", None)


def test_of_those_that_are_cancelled_while_they_begin_each_was_withdrawn_or_has_begun_and_none_both(
    view: View, tmp_path: Path
) -> None:
    view.is_late(1)
    names = [f"w{number}" for number in range(8)]
    task = new_task(len(names))
    for name in names:
        spawn(script(f"echo > {tmp_path}/{name}; exec sleep 60"), *SLURM, name=name)
    wait_until(lambda: [name for name in names if (tmp_path / name).exists()], what="one of them to run")
    run("cancel", "--all")
    ends = {name: is_settled(task, name) for name in names}
    assert {end["status"] for end in ends.values()} == {"cancelled"}
    for name, end in ends.items():
        claim = json.loads((launch_of(task, name) / "claim.json").read_bytes())
        assert (claim.get("by") == "head") == (end.get("message") == "it was waiting in the queue of slurm")
        assert not (claim.get("by") == "head" and (tmp_path / name).exists())


# -- what one side reads of the other ----------------------------------------------------------------------------------


def test_a_sign_of_life_counts_at_once(view: View) -> None:
    heartbeat = view.folder / "heartbeat"
    heartbeat.touch()
    woken, wakes = os.pipe()
    heard = HeardFrom(LaunchDir(str(view.folder)), woken, 60)
    view.is_late(math.inf)
    heard.silent_s()
    passes(0.3)
    before_s = heard.silent_s()
    os.utime(view.on_node(heartbeat))
    assert heard.silent_s() < before_s
    for fd in (woken, wakes):
        os.close(fd)


def test_a_command_that_is_called_on_a_node_of_nfs_is_answered_as_soon_as_it_was_carried_out(
    view: View, root: Path
) -> None:
    task = new_task()
    names = ("launch", "launch/calls", "launch/to-node", "launch/to-node/replies")
    for name in names:
        (view.folder / name).mkdir(mode=0o700)
    view.is_late(math.inf, lists_anew=True)
    launch = LaunchDir(str(view.on_node(view.folder / "launch")))
    carried = CalledCommands(Root(str(root)).task(task.path.name).worker("a"), launch)
    called = start("list", "--json", env={"AGENTCTL_LAUNCH": str(view.folder / "launch")})
    wait_until(lambda: carried.step() or called.poll() is not None, what="the command to begin")
    wait_until(lambda: carried.step() and not carried.is_any, what="the command to end")
    wait_until(lambda: called.poll() is not None, what="the answer")
    assert (called.communicate()[0], called.returncode) == ("[]\n", 0)


def test_a_command_that_is_seen_before_its_order_is_whole_begins_once_it_is(view: View, root: Path) -> None:
    task = new_task()
    for name in ("launch", "launch/calls", "launch/to-node", "launch/to-node/replies"):
        (view.folder / name).mkdir(mode=0o700)
    view.is_late(math.inf, lists_anew=True)
    carried = CalledCommands(Root(str(root)).task(task.path.name).worker("a"), LaunchDir(str(view.folder / "launch")))
    call = view.on_node(view.folder / "launch" / "calls" / "1-0a")
    call.mkdir()
    assert not carried.step()
    order = {"argv": ["list", "--json"], "cwd": str(root.parent), "set": {}, "unset": []}
    (call / "call.json").write_text(json.dumps(order), encoding="utf-8")
    assert carried.step()
    (call / "stdin.end").touch()
    wait_until(lambda: carried.step() and not carried.is_any, what="the command to end")
    reply = view.on_node(view.folder / "launch" / "to-node" / "replies" / "1-0a")
    assert ((reply / "stdout").read_text(), (reply / "stdout").stat().st_uid) == ("[]\n", os.getuid())


# -- what doctor says of it --------------------------------------------------------------------------------------------


def seconds_to_the_node_and_back() -> tuple[float, dict[str, str]]:
    """Return how long files take, as doctor has measured it, and what it found about that."""
    found = run("doctor", "--runner", "slurm", "--json").json
    (crossing,) = (one for one in found if one["what"].startswith("files take"))
    return float(crossing["what"].split()[2]), crossing


def test_doctor_tells_how_long_files_take_and_which_silence_is_too_short_for_that(view: View) -> None:
    view.is_late(2)
    took_s, crossing = seconds_to_the_node_and_back()
    assert 1.5 < took_s < 4
    assert crossing["severity"] == "ok"
    ask_engine("slurm", pollSeconds=POLL_S, silenceSeconds=3, folder=str(view.folder))
    took_s, crossing = seconds_to_the_node_and_back()
    assert 1.5 < took_s < 4
    assert crossing["severity"] == "warning"
    assert "a node that is silent for 3 s is taken for lost" in crossing["what"]
    assert "runners.slurm.silenceSeconds" in crossing["next"]

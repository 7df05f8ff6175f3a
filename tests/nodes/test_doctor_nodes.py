"""At stake: a root on a network file system is accepted that cannot carry a task, or a probe is left on a cluster."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import agentctl
from agentctl.adapters import accepted, mounts
from agentctl.adapters.mounts import Mount
from agentctl.adapters.taskdir import Root
from agentctl.errors import AgentctlError, Refused
from agentctl.operations.doctor import nodes
from agentctl.operations.doctor.nodes import NodeTest, examine_nodes
from agentctl.operations.where.findings import Finding
from agentctl.operations.where.locating import find_root
from tests.fake_slurm import FakeSlurm
from tests.steps import new_task
from tests.support import alike, run, start, start_argv, wait_until

#: Runs a command with another table of mounts: no test can mount a network file system.
ON_MOUNTS = """
import sys
import agentctl.adapters.mounts as mounts
from agentctl.interfaces.cli.app import main
mounts.TABLE = sys.argv[1]
sys.exit(main(sys.argv[2:]))
"""
MOUNTS = "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:30 / {} rw - nfs4 {} rw\n"
NFS = Mount("nfs4", "server:/shared", "/")


@pytest.fixture
def fakes(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeSlurm]:
    """Return what makes the commands of Slurm, in PATH."""

    def make(*, waits: bool) -> FakeSlurm:
        made = FakeSlurm(tmp_path / "slurm", waits=waits)
        for name, value in made.environ.items():
            monkeypatch.setenv(name, value)
        settings()
        return made

    return make


@pytest.fixture
def slurm(fakes: Callable[..., FakeSlurm]) -> FakeSlurm:
    """Return a Slurm whose jobs wait for ever."""
    return fakes(waits=True)


@pytest.fixture
def shared(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is taken for one on a network file system, and has the root."""
    folder = tmp_path / "shared"
    folder.mkdir()
    mount_from(folder, "server:/shared")
    monkeypatch.setattr(mounts, "TABLE", str(tmp_path / "mountinfo"))
    monkeypatch.setenv("AGENTCTL_ROOT", str(folder / ".agentctl"))
    return folder


def mount_from(folder: Path, source: str) -> None:
    (folder.parent / "mountinfo").write_text(MOUNTS.format(folder, source), encoding="utf-8")


def settings(**of_slurm: object) -> None:
    folder = Path(os.environ["HOME"], ".config", "agentctl")
    folder.mkdir(parents=True, exist_ok=True)
    value = {"runners": {"slurm": {"pollSeconds": 0.2, **of_slurm}}}
    (folder / "config.yaml").write_text(json.dumps(value), encoding="utf-8")


def found(
    root: Path, *severities: str, runner: str = "slurm", limit_s: float = 20.0, fix: bool = False
) -> list[Finding]:
    every = examine_nodes(NodeTest(runner, limit_s=limit_s, fix=fix), Root(str(root)))
    return [one for one in every if one.severity in severities]


def probes(folder: Path) -> list[Path]:
    return list(folder.glob(".agentctl-probe-*"))


# -- the probe ---------------------------------------------------------------------------------------------------------


def test_a_probe_tells_what_is_true_on_its_node_and_leaves_nothing(root: Path, fakes: Callable[..., FakeSlurm]) -> None:
    root.mkdir(mode=0o700)
    slurm = fakes(waits=False)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as gone:
        reached, closed = (f"127.0.0.1:{one.getsockname()[1]}" for one in (listener, gone))
        gone.close()
        said = run("doctor", "--runner", "slurm", "--network", reached, "--network", closed, "--partition", "short",
                   "--runner-arg=--account=lab", "--json")  # fmt: skip
    warnings = [one["what"] for one in said.json if one["severity"] == "warning"]
    assert warnings == [f"agents cannot reach {closed} from n1: Connection refused"], str(said)
    fine = " / ".join(one["what"] for one in said.json if one["severity"] == "ok")
    for words in ("a probe on n1", "to the node and back", "locks and FIFOs work on n1", "the clock of n1 agrees",
                  "as it is here", f"{reached} can be reached"):  # fmt: skip
        assert words in fine
    assert "accepted" not in fine, "a local root needs no acceptance"
    lines = run("doctor", "--runner", "slurm").out.splitlines()
    assert (lines[-1], len(lines)) == ("ok: nothing is wrong", 1 + sum(line.startswith("ok: ") for line in lines[:-1]))
    line, _ = slurm.calls("sbatch")
    assert "--partition=short" in line
    assert line.endswith("--account=lab")
    assert probes(root) == []


def test_a_probe_that_the_engine_does_not_start_is_told_and_taken_back(slurm: FakeSlurm, root: Path) -> None:
    root.mkdir(mode=0o700)
    (slurm.folder / "proctrack").write_text("proctrack/linuxproc", encoding="utf-8")
    warning, problem = found(root, "error", "warning", limit_s=0.3)
    assert problem.what == "slurm has not started the probe within 0.3 s: PENDING (Resources)"
    assert "--timeout-seconds" in problem.next
    assert "proctrack/linuxproc" in warning.what
    (job,) = (slurm.folder / "jobs").iterdir()
    assert any(line.endswith(f"--name={job.name}") for line in slurm.calls("scancel"))
    assert probes(root) == []


@pytest.mark.slow
def test_nodes_without_the_interpreter_are_told_in_the_engines_own_words(
    root: Path, fakes: Callable[..., FakeSlurm]
) -> None:
    fakes(waits=False)
    python = root.parent / "missing" / "python3"
    settings(python=str(python))
    (problem,) = found(root, "error")
    assert "has ended (slurm: COMPLETED) without a result" in problem.what
    assert f"{python}: not found" in problem.what
    assert "runners.slurm.python" in problem.next
    assert not root.exists(), "nobody has asked for a root"


def test_an_engine_that_does_not_answer_is_asked_for_no_probe(slurm: FakeSlurm, root: Path) -> None:
    (slurm.folder / "squeue").write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
    (problem,) = found(root, "error")
    assert problem.what == "slurm does not answer: Unable to contact slurm controller"
    assert slurm.calls("sbatch") == []


@pytest.mark.parametrize("number", [signal.SIGINT, *alike(signal.SIGTERM)])
def test_a_doctor_that_is_interrupted_takes_its_probe_back(slurm: FakeSlurm, root: Path, number: int) -> None:
    root.mkdir(mode=0o700)
    doctor = start("doctor", "--runner", "slurm")
    wait_until(lambda: list((slurm.folder / "jobs").iterdir()))
    doctor.send_signal(number)
    assert doctor.wait(timeout=20) == (130 if number == signal.SIGINT else 143)
    (job,) = (slurm.folder / "jobs").iterdir()
    assert job.read_text(encoding="utf-8").startswith("CANCELLED")
    assert probes(root) == []


def test_what_a_killed_doctor_left_is_removed_by_the_next_one(slurm: FakeSlurm, root: Path) -> None:
    root.mkdir(mode=0o700)
    doctor = start("doctor", "--runner", "slurm")
    wait_until(lambda: list((slurm.folder / "jobs").iterdir()))
    doctor.kill()
    doctor.wait(timeout=20)
    (left,) = probes(root)
    (told,) = (one for one in found(root, "note", limit_s=0.1) if one.where == str(left))
    assert (told.what, told.fixed) == ("left by a doctor that was killed", False)
    assert left.exists()
    (told,) = (one for one in found(root, "note", limit_s=0.1, fix=True) if one.where == str(left))
    assert told.fixed is True
    assert not left.exists()
    job = slurm.folder / "jobs" / f"agentctl-{left.name.removeprefix('.agentctl-probe-')}"
    assert job.read_text(encoding="utf-8").startswith("CANCELLED")


def test_a_worker_may_not_test_a_runner(root: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes is accepted for the person; and a probe takes options of the engine."""
    task = new_task()
    task.agent("a1").mkdir(parents=True)
    (task.agent("a1") / "spec.json").write_text("{}", encoding="utf-8")
    monkeypatch.setenv("AGENTCTL_TASK", "t1")
    monkeypatch.setenv("AGENTCTL_INSTANCE", "a1")
    with pytest.raises(Refused, match="a1 is a worker"):
        found(root, "error")
    assert slurm.calls("sbatch") == []


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--partition", "short"), 2, "add --runner slurm"),
        *alike(
            (("--runner", "local"), 2, "the runner local has no nodes"),
            (("--runner", "slurm", "--network", "nowhere"), 2, "--network takes HOST:PORT or agents, not 'nowhere'"),
            (("--runner", "slurm", "--runner-arg=--export=ALL"), 2, "agentctl says --export itself"),
            (("--runner", "unheard"), 3, "there is no runner 'unheard'"),
        ),
    ],
)
def test_a_test_that_cannot_be_is_bad_usage(slurm: FakeSlurm, options: tuple[str, ...], code: int, words: str) -> None:
    said = run("doctor", *options, check=False)
    assert (said.code, words in said.err) == (code, True), str(said)
    assert slurm.calls("sbatch") == []


def test_without_slurms_commands_the_finding_names_them(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root))
    (problem,) = found(root, "error")
    assert problem.what == "Slurm is not here: sbatch, squeue, scancel are not in PATH"


# -- a root on a network file system -----------------------------------------------------------------------------------


def why_refused() -> str:
    """Return why every command refuses the root; "" if none does."""
    try:
        find_root(None)
    except AgentctlError as error:
        return f"{error.message} {error.hint}"
    return ""


def test_a_shared_root_is_refused_until_a_test_accepts_it(shared: Path) -> None:
    def on_mounts(*args: str) -> tuple[int, str]:
        argv = [sys.executable, "-c", ON_MOUNTS, mounts.TABLE, *args]
        process = start_argv(argv, stderr=subprocess.STDOUT)
        out, _ = process.communicate(timeout=30)
        return process.returncode, out

    code, out = on_mounts("new", "--id", "t1", "Title")
    assert code == 1
    assert "nfs4" in out
    assert "agentctl doctor --runner slurm tests and accepts it" in out
    code, out = on_mounts("doctor", "--runner", "loopback")
    assert (code, "this root on nfs4 is accepted for the commands of this machine" in out) == (0, True), out
    assert probes(shared / ".agentctl") == []
    assert on_mounts("new", "--id", "t1", "Title")[0] == 0


def test_an_acceptance_counts_for_its_file_system_and_its_machine_alone(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / ".agentctl").mkdir(mode=0o700)
    accepted.accept(os.environ, shared / ".agentctl", NFS, "slurm")
    assert why_refused() == ""
    mount_from(shared, "other:/shared")
    assert "was accepted while it lay on another file system" in why_refused()
    mount_from(shared, "server:/shared")
    (shared / "more" / ".agentctl").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("AGENTCTL_ROOT", str(shared / "more" / ".agentctl"))
    assert "tests and accepts it" in why_refused(), "another root"
    monkeypatch.setenv("AGENTCTL_ROOT", str(shared / ".agentctl"))
    monkeypatch.setattr(accepted, "_machine", lambda: "another")
    assert f"is used from {os.uname().nodename}" in why_refused()
    monkeypatch.undo()


def test_others_cannot_accept_a_root_for_a_person(shared: Path) -> None:
    (shared / ".agentctl").mkdir(mode=0o700)
    accepted.accept(os.environ, shared / ".agentctl", NFS, "slurm")
    accepted.accepted_file(os.environ).chmod(0o666)
    assert "nothing in it counts" in why_refused()


def test_a_root_that_fails_is_not_accepted_and_one_that_was_is_so_no_longer(
    shared: Path, slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that does not start a probe proves nothing about a root; locks that fail do."""
    place = shared / ".agentctl"
    place.mkdir(mode=0o700)
    monkeypatch.setattr(nodes, "_tried", lambda _: [])
    assert found(place, "error", limit_s=0.1)
    assert accepted.acceptance_of(os.environ, place) is None
    accepted.accept(os.environ, place, NFS, "slurm")
    assert found(place, "error", limit_s=0.1)
    assert accepted.acceptance_of(os.environ, place) is not None
    monkeypatch.setattr(nodes, "_tried", lambda _: ["a lock (flock): two processes hold it at once"])
    assert "this root is no longer accepted" in [one.what for one in found(place, "error", limit_s=0.1)]
    assert accepted.acceptance_of(os.environ, place) is None


def test_the_trial_of_a_local_folder_finds_nothing_wrong(tmp_path: Path) -> None:
    program = Path(agentctl.__file__).parent / "worker_programs" / "on_node" / "__main__.py"
    argv = [sys.executable, "-I", str(program), "--trial", str(tmp_path / "trial")]
    done = subprocess.run(argv, capture_output=True, check=True)
    assert json.loads(done.stdout) == {"problems": []}

"""At stake: a file system or a node that is not fit is called fit, or a job of somebody is killed that is wanted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.codemark import code_mark
from agentctl.adapters.mounts import mount_of
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root
from agentctl.domain.placement import Placement
from agentctl.operations.doctor import nodes, strays
from agentctl.operations.doctor.nodes import NodeTest
from agentctl.operations.doctor.probing import ProbeAnswer
from agentctl.operations.doctor.reaching import hosts_for
from agentctl.operations.where.findings import Finding
from agentctl.runners.loopback import Loopback
from agentctl.supervision.worker.environment import store_folder
from agentctl.worker_programs.on_node import filesystem_trial
from tests.steps import new_task

# -- what a file system can do -----------------------------------------------------------------------------------------


def copies(source: str, target: str) -> None:
    Path(target).write_bytes(Path(source).read_bytes())


def forbidden(*_: object) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def in_place(path: Any, data: bytes, **_: object) -> None:
    Path(path).write_bytes(data)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ((os, "link", copies), "a hard link: two processes have made 20 names "),
        (
            (filesystem_trial, "is_alive_held", lambda _: False),
            "a liveness lock: a lock of another process is not seen",
        ),
        (
            (filesystem_trial, "try_lock", lambda path: os.open(path, os.O_RDWR)),
            "a lock (flock): two processes hold it at once",
        ),
        ((os, "mkfifo", forbidden), "a FIFO: Operation not permitted"),
        (
            (filesystem_trial, "write_whole", in_place),
            "a rename over a file: it changes what another process reads at the moment",
        ),
    ],
    ids=lambda one: str(one)[:30],
)
def test_what_a_file_system_cannot_do_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: tuple[object, str, Callable[..., object]], problem: str
) -> None:
    monkeypatch.setattr(*broken)
    monkeypatch.setattr(
        filesystem_trial, "_CHECKS", [one for one in filesystem_trial._CHECKS if problem.startswith(f"{one[0]}:")]
    )
    (said,) = filesystem_trial.problems_of(FilePath(tmp_path / "trial"))
    assert said.startswith(problem)


# -- what an answer means ----------------------------------------------------------------------------------------------


def examination(root: Path) -> nodes._NodeExamination:
    test = NodeTest("loopback", network=["127.0.0.1:9"])
    return nodes._NodeExamination(test, Root(str(root)), Placement("loopback"), bool)


def answer(begun: dict[str, Any] | None = None, found: dict[str, Any] | None = None, **more: float) -> ProbeAnswer:
    from agentctl import __version__

    here = os.stat(os.getcwd())
    begun = {"node": "n1", "version": __version__, "code": code_mark(), **(begun or {})}
    found = {"folder": [here.st_ino, here.st_mtime_ns], "files": [], "imports": "", **(found or {})}
    values = {"started_s": 1.0, "back_s": 0.1, "skew_s": 0.0, "inexact_s": 0.1, **more}
    return ProbeAnswer(begun=begun, found=found, **values)


def said_of(root: Path, heard: ProbeAnswer) -> list[tuple[str, str]]:
    one = examination(root)
    every = [*one._crossing(heard), *one._program(heard), *one._work(heard)]
    return [(each.severity, each.what) for each in every if each.severity != "ok"]


def test_a_node_as_it_should_be_gives_no_warning(root: Path) -> None:
    assert said_of(root, answer()) == []
    assert said_of(root, answer(skew_s=-5.05)) == [], "the exchange itself is no more exact"


@pytest.mark.parametrize(
    ("heard", "severity", "words"),
    [
        ({"skew_s": -7.0}, "warning", "the clock of n1 differs by -7.0 s"),
        ({"back_s": 30.0}, "warning", "files take 30.00 s"),
        ({"begun": {"version": "0.0.1"}}, "error", "n1 has agentctl 0.0.1"),
        ({"begun": {"code": "0"}}, "warning", "is not the same code"),
        ({"found": {"imports": "ModuleNotFoundError: yaml"}}, "error", "cannot run on n1: ModuleNotFoundError: yaml"),
        ({"found": {"files": ["a FIFO: Operation not permitted"]}}, "error", "a FIFO: Operation not permitted"),
        ({"found": {"folder": None}}, "warning", "this folder is not there"),
        ({"found": {"folder": [1, 2]}}, "warning", "this folder is another folder"),
        ({"found": {"missing": ["/opt/claude"]}}, "note", "there is no /opt/claude"),
        (
            {"found": {"unreachable": [["127.0.0.1:9", "timed out"]]}},
            "warning",
            "cannot reach 127.0.0.1:9 from n1",
        ),
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_difference_is_told(root: Path, heard: dict[str, Any], severity: str, words: str) -> None:
    ((told, what),) = said_of(root, answer(**heard))
    assert told == severity
    assert words in what


# -- launches that nobody wants ----------------------------------------------------------------------------------------


class Engine(Loopback):
    """An engine that says to carry out some launches, and keeps which of them it was to kill."""

    def __init__(self, *running: str) -> None:
        self.running, self.killed = running, list[str]()

    def reconcile(self, wanted: Collection[str]) -> list[str]:
        return [name for name in self.running if name not in wanted]

    def kill(self, launch_id: str) -> None:
        self.killed.append(launch_id)


IDS = {
    name: f"{number:016x}" for number, name in enumerate(("over", "fresh", "at work", "unknown", "followed", "lost"))
}


@pytest.fixture
def engine(root: Path) -> Engine:
    """Return an engine with a launch of each kind."""
    launches = new_task().agent("a1") / "launches"
    for name in ("over", "fresh", "at work", "lost"):
        (launches / IDS[name]).mkdir(parents=True)
        if name != "at work":
            (launches / IDS[name] / "verdict.json").write_text("{}", encoding="utf-8")
    for name in ("over", "lost"):
        os.utime(launches / IDS[name] / "verdict.json", (1, 1))
    for name in ("followed", "lost"):  # The key of a launch whose node may tell more stays in memory.
        Path(store_folder(), f"launch-{IDS[name]}.key").write_text("00", encoding="utf-8")
    return Engine(*IDS.values())


def stray(root: Path, engine: Engine, *, fix: bool) -> dict[str, Finding]:
    every = list(strays.examine_strays(engine, Root(str(root)), None, fix=fix))
    return {name: one for name, number in IDS.items() for one in every if number in one.what}


def test_only_what_is_known_to_be_over_is_killed(root: Path, engine: Engine) -> None:
    told = stray(root, engine, fix=False)
    assert {name: one.severity for name, one in told.items()} == {
        "over": "warning",
        "lost": "warning",
        "unknown": "note",
    }
    assert engine.killed == []
    told = stray(root, engine, fix=True)
    assert {name: one.fixed for name, one in told.items()} == {"over": True, "lost": True, "unknown": False}
    assert engine.killed == [IDS["over"], IDS["lost"]]


# -- hosts, mounts -----------------------------------------------------------------------------------------------------


def test_the_hosts_of_agents_follow_their_variables_and_the_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "claude").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hosts_for(["agents", "x:1", "x:1"], {}) == ["api.anthropic.com:443", "x:1"]
    assert hosts_for(["agents"], {"ANTHROPIC_BASE_URL": "https://models.lab/v1"}) == ["models.lab:443"]
    assert hosts_for(["agents"], {"HTTPS_PROXY": "http://proxy:3128"}) == ["proxy:3128"]
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert hosts_for(["agents"], {"HTTPS_PROXY": "http://proxy:3128"}) == []


def test_a_mount_is_known_again_by_its_source_and_not_by_its_number(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    for number in (30, 77):
        table.write_text(f"{number} 22 0:{number} /me /home rw - nfs4 server:/a\\040b rw\n", encoding="utf-8")
        mount = mount_of("/home/x", str(table))
        assert mount is not None
        assert mount.identity == "nfs4 server:/a b /me"

"""At stake: an upgrade, which replaces the files of agentctl, ends workers whose programs load something later."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest

from agentctl.runners.registry import _OWN
from agentctl.shim.later import SHIM, UNDERTAKER, WAKER
from agentctl.shim.unloaded import UNLOADED
from agentctl.worker_programs.agent_host.later import HOST
from agentctl.worker_programs.on_node.later import POST, STAND_IN
from tests.imported import loaded_with, reached_from, source_of
from tests.support import REPOSITORY

#: The program of its own that records a worktree loads it, at its start; no shim does.
_OF_RECORDER = {"agentctl.supervision.worktree.changes"}
#: They read no question.
_OF_QUESTIONS = {"agentctl.domain.question"}
#: What `runners.registry` loads by name.
_RUNNERS = tuple(_OWN.values())
_ACP = "agentctl.drivers.acp.conversation"
_HOST = (
    "agentctl.worker_programs.agent_host.main", "agentctl.worker_programs.agent_host.busy_program",
    "agentctl.worker_programs.agent_host.later", "agentctl.adapters.kept_code",
)  # fmt: skip
_DRIVERS = (
    ("agentctl.drivers.claude",),
    ("agentctl.drivers.codex",),
    ("agentctl.drivers.llm",),
    ("agentctl.drivers.command",),
    ("agentctl.drivers.acp.program", _ACP),
)


def later_than(modules: Collection[str], without: Collection[str] = (), also: Collection[str] = ()) -> set[str]:
    """Return the modules that a program may load after its start.

    Args:
        modules: What it loads at its start.
        without: What it never loads, although something that it loads does.
        also: What it loads by a name that no source has.
    """
    # One that speaks ACP needs a library (`AgentRequest.argv`).
    there = loaded_with(modules, ("-E", "-P") if _ACP in modules else ("-I", "-S"))
    reached = reached_from([*modules, *also], without) - there
    return {module for module in reached if (source_of(module) or Path()).name != "__init__.py"}


def named_in(later: Mapping[str, Sequence[str]]) -> set[str]:
    return {f"{package}.{module}" for package, modules in later.items() for module in modules}


@pytest.mark.parametrize(
    ("kept", "program", "without", "also"),
    [
        pytest.param(SHIM, ["agentctl.shim.loop"], _OF_RECORDER | _OF_QUESTIONS, (), id="shim"),
        pytest.param(UNDERTAKER, ["agentctl.supervision.stop.undertaker"], _OF_QUESTIONS, (), id="undertaker"),
        pytest.param(WAKER, ["agentctl.supervision.dispatch.waker"], (), (), id="waker"),
        pytest.param({}, ["agentctl.supervision.notify.sender"], (), (), id="sender"),
        pytest.param(STAND_IN, ["agentctl.worker_programs.on_node.stand_in"], (), _RUNNERS, id="stand-in"),
        pytest.param(POST, ["agentctl.worker_programs.on_node.post"], (), _RUNNERS, id="post"),
    ],
)
def test_what_a_program_may_load_later_is_kept(
    kept: Mapping[str, Sequence[str]], program: list[str], without: Collection[str], also: Collection[str]
) -> None:
    assert named_in(kept) == later_than(program, without, also)


def test_what_a_host_may_load_later_is_kept_whatever_its_driver_is() -> None:
    assert named_in(HOST) == set().union(*(later_than([*_HOST, *driver]) for driver in _DRIVERS))


def test_shim_and_host_agree_how_a_host_ends_that_was_not_loaded() -> None:
    assert f"_UNLOADED = {UNLOADED}\n" in (REPOSITORY / "agentctl/worker_programs/agent_host/__main__.py").read_text(
        encoding="utf-8"
    )


# -- what is kept ------------------------------------------------------------------------------------------------------

_PROGRAM = """
import os, sys
sys.path[:0] = [{repository!r}, {folder!r}]
from agentctl.adapters.kept_code import keep_open
import parcel
before = os.listdir("/proc/self/fd")
keep_open({{"parcel.inner": ["one", "two"], "parcel": ["three"]}})
print("at once:", *sorted(name for name in sys.modules if name.startswith("parcel")))
os.rename({folder!r} + "/parcel", {folder!r} + "/aside")
try:
    from parcel.inner import one, two
    from parcel import three
    print(one.NAME, two.NAME, three.NAME, one.__file__)
except ImportError as error:
    print("failed:", error)
print("open:", len(os.listdir("/proc/self/fd")) - len(before))
"""


@pytest.fixture
def parcel(tmp_path: Path) -> Path:
    folder = tmp_path / "packages" / "parcel"
    (folder / "inner").mkdir(parents=True)
    for name, text in {
        "__init__": "", "inner/__init__": "", "inner/one": "from parcel.inner.two import NAME\n",
        "inner/two": "NAME = 'two'\n", "three": "NAME = 'three'\n",
    }.items():  # fmt: skip
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "compileall", "-q", folder], check=True)
    return folder


def run_with(parcel: Path, before: str = "") -> list[str]:
    """Run the program, in a shell, after some commands."""
    code = _PROGRAM.format(repository=str(REPOSITORY), folder=str(parcel.parent))
    argv = ["/bin/sh", "-c", f'{before}\nexec "$0" -I -S -c "$1"', sys.executable, code]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_module_whose_files_are_gone_is_loaded_from_what_was_kept(parcel: Path) -> None:
    assert run_with(parcel) == [
        "at once: parcel",
        f"two two three {parcel}/inner/one.py",
        "open: 0",
    ]


def test_a_library_that_is_not_there_is_asked_for_no_sooner_than_ever(parcel: Path) -> None:
    """A host runs without the libraries of others: what needs them is loaded by other programs, and by it as well."""
    (parcel / "three.py").write_text("import no_such_library\n", encoding="utf-8")
    told = run_with(parcel, before="export PYTHONDONTWRITEBYTECODE=1")
    assert told[0] == "at once: parcel"
    assert "failed:" in told[1]


def test_one_without_a_compiled_file_or_with_one_of_another_source_is_loaded_at_once(parcel: Path) -> None:
    (parcel / "three.py").write_text("NAME = 'new'  # longer\n", encoding="utf-8")
    next((parcel / "inner/__pycache__").glob("two.*")).unlink()
    assert run_with(parcel, before="export PYTHONDONTWRITEBYTECODE=1") == [
        "at once: parcel parcel.inner parcel.inner.two parcel.three",
        f"two two new {parcel}/inner/one.py",
        "open: 0",
    ]


def test_where_few_descriptors_are_allowed_all_are_loaded_at_once(parcel: Path) -> None:
    first, second, third = run_with(parcel, before="ulimit -n 100")
    assert first == "at once: parcel parcel.inner parcel.inner.one parcel.inner.two parcel.three"
    assert (second, third) == (f"two two three {parcel}/inner/one.py", "open: 0")

"""At stake: who chooses a task has it until they choose another one, and no command is about a task by mistake."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentctl.interfaces.commands.model.catalogue import command_by_words
from agentctl.interfaces.commands.programs.served_commands import SERVED
from tests.advice import follow
from tests.fakessh import FAR_END, define_hosts, put_ssh
from tests.steps import new_task, spawn
from tests.support import PROGRAM, Completed, environment, remove, run, text_in, wait_until, worker
from tests.terminal import Terminal, on_a_terminal
from tests.tmux import TmuxWindow, needs_tmux, tmux_window

ELSEWHERE = ["setsid", "-w", *PROGRAM]
SLEEPS = "sleep 600"


class Seat:
    """A shell without a terminal in a session of its own, as that of a script or of cron."""

    def __init__(self, **env: str) -> None:
        self.shell = subprocess.Popen(
            ["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(env), start_new_session=True,
        )  # fmt: skip

    def do(self, line: str) -> Completed:
        """Have a command of agentctl carried out; return how it ended, with all that it has printed."""
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.write(f"{' '.join(PROGRAM)} {line} </dev/null; echo ended $?\n")
        self.shell.stdin.flush()
        said = list(iter(self.shell.stdout.readline, "")) if self.shell.poll() is not None else []
        while not said or not said[-1].startswith("ended "):
            said.append(self.shell.stdout.readline())
        return Completed(argv=("agentctl", line), code=int(said[-1].split()[1]), out="".join(said[:-1]), err="")


@contextmanager
def seats(number: int) -> Iterator[list[Seat]]:
    made = [Seat() for _ in range(number)]
    try:
        yield made
    finally:
        for seat in made:
            leave(seat)


def leave(seat: Seat) -> None:
    """End the shell there."""
    seat.shell.communicate(timeout=20)


def statuses(task: str) -> dict[str, str]:
    return {row["agentInstance"]: row["status"] for row in run("list", "--task", task, "--json").json}


def folder_says() -> str:
    return (Path(os.environ["AGENTCTL_ROOT"]) / "current").read_text().strip()


def names(root: Path) -> set[str]:
    return {path.name for path in (root / "chosen").iterdir()} - {".gitignore"}


def own_choice(root: Path) -> Path:
    (name,) = names(root)
    return root / "chosen" / name


# -- each keeps its own ------------------------------------------------------------------------------------------------


def test_what_is_chosen_elsewhere_changes_nothing_here(root: Path) -> None:
    with seats(3) as (one, two, fresh):
        one.do("new A --id a")
        one.do(f"spawn --name work -- {SLEEPS}")
        two.do("new B --id b")
        two.do(f"spawn --name other -- {SLEEPS}")
        assert one.do("use").out.split("\t")[::2] == ["a", "terminal\n"]
        assert two.do("use").out.split("\t")[::2] == ["b", "terminal\n"]
        assert fresh.do("use").out.split("\t")[::2] == ["b", "folder\n"]
        assert one.do("cancel --all --grace-seconds 1").out == "work cancelled\nstarted in the meantime: 0\n"
        assert (statuses("a"), statuses("b")) == ({"work": "cancelled"}, {"other": "running"})
        marked = {seat: seat.do("tasks").out.splitlines() for seat in (one, fresh)}
        assert [[line.split("\t")[3] for line in lines] for lines in marked.values()] == [["*", "-"], ["-", "*"]]

        told = fresh.do("cancel --all --grace-seconds 1")
        assert "no task was chosen in this terminal; b is the one last chosen in" in told.out
        assert "other cancelled" in told.out

        two.do("use a")
        assert fresh.do("use").out.startswith("a\t")
        assert "AGENTCTL_TASK" not in two.do("use b").out


@pytest.mark.slow
def test_scripts_side_by_side_do_not_disturb_each_other(root: Path) -> None:
    lines = "for i in 1 2 3; do {0} new $NAME --id $NAME$i; {0} spawn --name $NAME$i -- true; {0} use; done"
    script = lines.format(" ".join(PROGRAM))
    scripts = {
        name: subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True, env=environment({"NAME": name}),
                               start_new_session=True)
        for name in ("x", "y", "z")
    }  # fmt: skip
    for name, process in scripts.items():
        said, _ = process.communicate(timeout=60)
        chosen = [line for line in said.splitlines() if line.endswith("\tterminal")]
        assert [line.split("\t")[0] for line in chosen] == [f"{name}{number}" for number in (1, 2, 3)], said
    for name in ("x1", "x2", "x3", "y1", "y2", "y3", "z1", "z2", "z3"):
        run("wait-all", "--task", name)
        assert statuses(name) == {name: "completed"}


def test_a_choice_that_is_killed_half_way_holds_for_who_made_it(root: Path) -> None:
    with seats(2) as (one, fresh):
        one.do("new A --id a")
        one.do("new B --id b --no-use")
        killed = Seat(AGENTCTL_FAILPOINT="use.after-seat")
        assert killed.do("use b").code == 128 + signal.SIGKILL
        assert killed.do("use").out.split("\t")[::2] == ["b", "terminal\n"]
        assert killed.do("new C --id c").code == 128 + signal.SIGKILL
        assert killed.do("use").out.split("\t")[::2] == ["c", "terminal\n"]
        assert fresh.do("use").out.split("\t")[::2] == ["a", "folder\n"]
        leave(killed)
        (root / "chosen" / "x.1.0123abcd.tmp").touch()
        one.do("use b")
        assert fresh.do("use").out.split("\t")[::2] == ["b", "folder\n"]
        assert len(names(root)) == 1, "those of seats that were left are gone, and what was not finished"


def test_who_outlives_the_leader_of_the_session_has_what_the_folder_says(root: Path, tmp_path: Path) -> None:
    agentctl, out = " ".join(PROGRAM), tmp_path / "out"
    outlives = f"while kill -0 $$; do sleep 0.02; done 2>/dev/null; {agentctl} use >{out}.new; mv {out}.new {out}"
    subprocess.run(
        ["sh", "-c", f"{agentctl} new A --id a; ({outlives}) & {agentctl} new B --id b"],
        env=environment(), start_new_session=True, check=True, stdout=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip
    said = wait_until(lambda: text_in(out), what="what the one that is left says")
    assert said.split("\t")[::2] == ["b", "folder\n"]


def test_only_what_certainly_nobody_needs_is_removed(root: Path) -> None:
    with seats(1) as (one,):
        one.do("new A --id a")
        own = own_choice(root)
        machine, boot, namespace, pid, start = own.name.split(".")
        kept = {f"elsewhere.{boot}.{namespace}.{pid}.1", f"{machine}.{boot}.none.{pid}.1", "what is this"}
        gone = {f"{machine}.0-0-0-0-0.{namespace}.{pid}.{start}", f"{machine}.{boot}.{namespace}.{pid}.1"}
        for name in kept | gone:
            (root / "chosen" / name).write_text("a\n")
        one.do("use a")
        assert names(root) == kept | {own.name}


@pytest.fixture
def far(root: Path, tmp_path: Path) -> None:
    """Define a host, `far`, by a program called `ssh`."""
    put_ssh(tmp_path / "bin", f"exec setsid -w {FAR_END}")
    define_hosts({"far": {"ssh": "far"}})


@pytest.mark.slow
def test_on_another_host_a_terminal_keeps_its_task_too(far: None) -> None:
    with seats(2) as (one, two):
        one.do("--host far new A --id a")
        two.do("--host far new B --id b")
        assert one.do("--host far use").out.split("\t")[::2] == ["a", "terminal\n"]
        assert two.do("--host far use").out.split("\t")[::2] == ["b", "terminal\n"]
    assert run("--host", "far", "use").out.split("\t")[::2] == ["b", "folder\n"]


def test_who_orders_on_another_host_is_asked_there(far: None) -> None:
    new_task(grace=0.1)
    spawn(worker("sleeps", 600), name="a")
    code, said = at_a_terminal("--host", "far", "cancel", "--all", answer="n\n")
    assert (code, "Cancel 1 worker of task t1?" in said, statuses("t1")) == (1, True, {"a": "running"}), said
    code, said = at_a_terminal("--host", "far", "cancel", "--all", answer="y\n")
    assert (code, said.endswith("a cancelled\nstarted in the meantime: 0\nin task t1\n")) == (0, True), said


# -- what cannot be taken ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.follows(
    "operations/where/chosen_task.check_choice: agentctl use",
    "operations/where/chosen_task.check_choice: agentctl new",
)
def test_no_other_task_is_taken_for_one_that_is_gone(root: Path) -> None:
    run("new", "B", "--id", "b")
    told = run("use")
    for command in (["list"], ["spawn", "--", "true"], ["use"], ["cancel", "--all"]):
        run("new", "A", "--id", "a")
        remove(root / "tasks" / "a")
        told = run(*command, check=False)
        assert (told.code, f"was chosen in this terminal is gone: a in {root}" in told.err) == (3, True), told
        assert [row["current"] for row in run("tasks", "--json").json] == [False]
    follow(told, 'agentctl new "TITLE"')
    assert run("use").out.startswith("title\t")
    follow(told, "agentctl use TASK", put={"TASK": "b"})
    assert run("use").out.startswith("b\t")


@pytest.mark.slow
@pytest.mark.follows(
    "operations/where/chosen_task.check_choice: agentctl archive --bring-back",
    "operations/where/locating._other_tasks: agentctl archive --bring-back",
)
def test_who_puts_a_task_away_has_none_chosen_and_others_are_told(root: Path) -> None:
    back = "agentctl archive --bring-back a"
    for named in ("use", "list --task a"):
        with seats(2) as (one, other):
            one.do("new A --id a")
            other.do("use a")
            assert one.do("archive a").code == 0
            assert "no task is chosen in" in one.do("use").out
            told = other.do(named)
            assert (told.code, back in told.out) == (3, True), told
            follow(told, back)
            assert other.do("use").out.startswith("a\t")
            remove(root / "tasks" / "a")


@pytest.mark.slow
@pytest.mark.follows("operations/where/chosen_task._named_in: agentctl use")
def test_a_choice_that_cannot_be_read_is_no_other_one(root: Path) -> None:
    run("new", "A", "--id", "a")
    own = own_choice(root)
    own.write_bytes(b"../a\n")
    told = run("spawn", "--", "true", check=False)
    assert (told.code, f"{own} names no task" in told.err) == (1, True), told
    assert len(run("tasks", "--json").json) == 1
    follow(told, "agentctl use TASK", put={"TASK": "a"})
    assert run("use").out.startswith("a\t")


@pytest.mark.slow
def test_a_choice_that_came_with_a_repository_is_not_taken(root: Path) -> None:
    """Nobody can know the name of a seat before there is one; a worker can, and what it writes counts no more."""
    new_task()
    run("new", "Mine", "--id", "mine")
    for mark in (Path(os.environ["HOME"]) / ".config" / "agentctl" / "own").iterdir():
        mark.unlink()
    run("new", "Mine too", "--id", "too")
    own = own_choice(root)
    own.write_text("t1\n")
    for command, code in ((["list"], 3), (["spawn", "--", "true"], 1), (["cancel", "--all"], 3)):
        told = run(*command, check=False)
        assert (told.code, f"{own} names t1, which was not made here by you" in told.err) == (code, True), told


@pytest.mark.slow
def test_the_environment_comes_before_what_is_chosen(root: Path) -> None:
    for name in ("a", "b"):
        run("new", name, "--id", name)
    named = {"AGENTCTL_TASK": "a"}
    assert run("use", "--json", env=named).json["chosenBy"] == "environment"
    assert "AGENTCTL_TASK names a: until it is unset" in run("use", "b", env=named).err
    assert run("use", "b").err == ""


# -- at a terminal -----------------------------------------------------------------------------------------------------


def at_a_terminal(*words: str, answer: str = "") -> tuple[int, str]:
    """Run a command at a terminal where no task was chosen; return its exit code and what it has printed."""
    terminal = Terminal([*ELSEWHERE, *words])
    if answer:
        terminal.until("[y/N] ")
        terminal.write(answer.encode())
    terminal.drain()
    return terminal.process.wait(timeout=30), terminal.sent.decode().replace("\r", "")


def test_who_has_not_chosen_the_task_is_asked_before_all_of_it_is_cancelled(root: Path) -> None:
    new_task(grace=0.1)
    for name in ("a", "b"):
        spawn(worker("sleeps", 600), name=name)
    code, said = at_a_terminal("cancel", "--all", answer="\n")
    assert (code, "Cancel 2 workers of task t1?" in said, "nothing was changed" in said) == (1, True, True), said
    code, said = at_a_terminal("cancel", "--status", "running", answer="n\n")
    assert (code, set(statuses("t1").values())) == (1, {"running"}), said
    code, said = at_a_terminal("cancel", "a")
    assert (code, said) == (0, "a cancelled\nin task t1\n")
    code, said = at_a_terminal("cancel", "--all", answer="y\n")
    assert (code, "Cancel 1 worker of task t1?" in said, "b cancelled" in said) == (0, True, True), said
    assert "nothing to cancel" in at_a_terminal("cancel", "--all")[1], "there is nothing to ask"


@pytest.mark.parametrize("words", [["--yes"], ["--task", "t1"]])
def test_who_says_so_is_not_asked(root: Path, words: list[str]) -> None:
    new_task(grace=0.1)
    spawn(worker("sleeps", 600), name="a")
    code, said = at_a_terminal("cancel", "--all", *words)
    assert (code, said) == (0, "a cancelled\nstarted in the meantime: 0\nin task t1\n")


#: Commands of a task that change something, and say themselves which task it was.
NAMING = {
    "spawn-template", "spawn", "resume", "retry", "join", "interact respond", "new", "subtask", "wait", "wait-any",
    "wait-all", "notify on", "notify off",
}  # fmt: skip


@pytest.mark.slow
def test_each_command_that_changes_a_task_says_which(root: Path) -> None:
    changing = {one.command for one in SERVED if one.method == "POST"}
    told = {words for words in changing if command_by_words(words).names_task}
    assert changing - told - NAMING == set()
    new_task()
    spawn(worker("sleeps", 600), name="w")
    for line in ("pause w", "unpause w", "pause", "unpause", "send w hello", "resume-queue", "cancel w"):
        assert on_a_terminal([*PROGRAM, *line.split()])[1].endswith(b"in task t1\r\n"), line
        assert b"in task" not in on_a_terminal([*PROGRAM, *line.split(), "--json"])[1], line
    assert b" in t1\r\n" in on_a_terminal([*PROGRAM, "retry", "w"])[1]
    assert "in task" not in str(run("cancel", "w"))


@pytest.mark.slow
def test_a_worker_of_another_task_is_said_to_be_there(root: Path) -> None:
    for name, instance in (("a", "wide"), ("b", "deep"), ("c", "deep"), ("d", "deep"), ("e", "deep"), ("survey", "s")):
        run("new", name, "--id", name)
        run("spawn", "--name", instance, "--wait", "--", "true")
    told = run("logs", "wide", check=False)
    assert "no worker 'wide' in task survey\nhint: wide is in another task: --task a; known: s\n" in told.err
    assert run("logs", "wide", "--task", "a").code == 0
    there = "; ".join(f"deep is in another task: --task {name}" for name in ("b", "c", "d"))
    assert f"hint: {there}; 1 more has one of that name; known: s\n" in run("result", "deep", check=False).err
    assert "hint: known: s\n" in run("logs", "nobody", check=False).err


@needs_tmux
@pytest.mark.slow
def test_in_two_windows_each_has_its_task(root: Path) -> None:
    agentctl = " ".join(PROGRAM)
    with tmux_window(160, 30) as one, tmux_window(160, 30) as two, tmux_window(160, 30) as third:

        def typed(window: TmuxWindow, line: str, *shown: str) -> None:
            window.write(f"clear; {agentctl} {line}; echo code=$?")
            window.press("Enter")
            window.shows(*shown)

        typed(one, "new A", "tasks/a")
        typed(one, f"spawn --name work -- {SLEEPS}", "work running", "in a")
        typed(two, "new B", "tasks/b")
        typed(two, f"spawn --name other -- {SLEEPS}", "other running", "in b")
        typed(one, "cancel --all --grace-seconds 1", "work cancelled", "in task a", "code=0")
        assert (statuses("a"), statuses("b")) == ({"work": "cancelled"}, {"other": "running"})
        typed(third, "use", "b: the one last chosen in this folder")
        third.write(f"clear; {agentctl} cancel --all --grace-seconds 1; echo code=$?")
        third.press("Enter")
        third.shows("Cancel 1 worker of task b? [y/N]")
        third.press("Enter")
        third.shows("nothing was changed", "code=1")
        assert statuses("b") == {"other": "running"}
        typed(two, "use", "b: chosen in this terminal")
    run("cancel", "--all", "--task", "b", "--grace-seconds", "1")

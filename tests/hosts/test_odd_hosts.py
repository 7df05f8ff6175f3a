"""At stake: whatever ssh or the other side does, a command says what happened, and the terminal obeys nothing.

The `ssh` of these tests is a program of theirs: it starts the far end on this machine, or does what a host should not.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import agentctl
from agentctl.operations.talk.answerers import who_answers
from agentctl.operations.where.calling import FROM_WORKER
from tests.fakessh import FAR_END, define_hosts, put_ssh, put_ssh_in_python
from tests.processes import children_of, variables_of, words_of
from tests.steps import new_task, spawn
from tests.support import PROGRAM, alike, run, start, wait_until, worker
from tests.terminal import on_a_terminal

HELLO = f"say(frames.hello_line({agentctl.__version__!r}))"
OTHER_PROTOCOL = 'printf \'\\0agentctl\\0{"protocol": 99, "version": "9.0"}\\n\'; cat'
#: Takes the order.
TAKE = f"{HELLO}\norder = os.read(0, 1 << 20)\n"

pytestmark = pytest.mark.usefixtures("root")


def test_a_command_there_is_the_same_as_here(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    new_task()
    for argv, code in ((["exits", 0], 0), (["exits", 255], 255), (["exits", 3], 3)):
        assert run("--host", "h", "spawn", "--wait", "--", *worker(*map(str, argv)), check=False).code == code
    for args in (
        ["list", "--json"],
        ["list"],
        ["show", "nobody"],
        ["lst"],
        ["tasks", "--root", str(tmp_path / "missing")],
        ["--version"],
    ):
        there, here = run("--host=h", *args, check=False), run(*args, check=False)
        # What is advised there has to be typed here.
        advice = here.err.replace("agentctl new", "agentctl --host h new")
        assert (there.code, there.out, there.err) == (here.code, here.out, advice)


@pytest.mark.parametrize(
    ("script", "says", "hint"),
    [
        ("echo 'ssh: no route' >&2; exit 255", "h does not answer", "ssh -T h agentctl --version"),
        ("exit 127", "agentctl was not found on h", "agentctl: /PATH"),
        ("echo \"error: there is no command '_far'\" >&2; exit 2", "h started no agentctl (exit code 2)", "install"),
        ("kill -9 $$", "h does not answer", "ssh -T h"),
        ("exec head -c 100000 /dev/zero", "h does not answer as agentctl does", "look at what it prints"),
        *alike(("printf '\\0agentctl\\0{}\\n'", "its hello is not that of agentctl", "")),
        (OTHER_PROTOCOL, "do not understand each other", "same version"),
    ],
)  # fmt: skip
def test_a_host_that_does_not_answer(tmp_path: Path, script: str, says: str, hint: str) -> None:
    put_ssh(tmp_path / "bin", script)
    alone = run("--host", "h", "list", check=False)
    assert (alone.code, alone.out) == (1, "")
    assert says in alone.err
    assert hint in alone.err
    assert "bug" not in alone.err
    new_task()
    several = run("list", "--hosts", "here,h", "--json", check=False)
    assert (several.code, [row["host"] for row in several.json]) == (1, ["h"])
    assert says in several.json[0]["error"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (TAKE, "the connection to h broke"),
        (f"{TAKE}say(b'1\\0\\0')", "the connection to h broke"),
        (f"{TAKE}say(b'?' * 100)", "h does not answer as agentctl does"),
        (f"{TAKE}say(b'1\\xff\\xff\\xff\\xff')", "h does not answer as agentctl does"),
        (f"{TAKE}time.sleep(600)", "h does not answer: it has been silent for 1 s"),
        ("time.sleep(600)", "h does not answer: within 1 s"),
    ],
)
def test_a_host_that_answers_with_something_else(tmp_path: Path, code: str, says: str) -> None:
    define_hosts({"h": {"ssh": "h", "silentSeconds": 1}})
    put_ssh_in_python(tmp_path / "bin", code)
    ended = run("--host", "h", "list", check=False, env={"SSH_ASKPASS": None})
    assert (ended.code, ended.out) == (1, "")
    assert says in ended.err, ended
    several = run("list", "--hosts", "h", check=False)
    assert (several.code, several.out) == (1, "")
    assert says in several.err


def test_a_login_shell_may_print_what_it_likes(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"echo Welcome; printf '\\033]0;x\\007'; echo hm >&2; exec {FAR_END}")
    new_task()
    listed = run("--host", "h", "tasks", "--json")
    assert [row["taskId"] for row in listed.json] == ["t1"]
    assert "Welcome" in listed.err
    assert [row["host"] for row in run("tasks", "--hosts", "h", "--json").json] == ["h"]
    _, shown = on_a_terminal([*PROGRAM, "--host", "h", "tasks"])
    assert b"\\x1b]0;x\\x07" in shown


def test_other_versions_are_told_once(root: Path, tmp_path: Path) -> None:
    code = f"import agentctl; agentctl.__version__ = '9.8'; from agentctl.interfaces.cli.app import run; run(['_far'])"  # noqa: F541
    put_ssh(tmp_path / "bin", f'exec {sys.executable} -c "{code}"')
    new_task()
    listed = run("--host", "h", "tasks", "--json")
    assert listed.err == f"warning: h has agentctl 9.8, and this is {agentctl.__version__}\n"
    assert "h has agentctl 9.8" in run("tasks", "--hosts", "h").err


OBEYED = "\x1b]0;owned\x07\x1b[2J\x1b[6n\x1b]52;c;eA==\x07"


def test_no_escape_of_another_host_reaches_the_terminal(tmp_path: Path) -> None:
    sent = f"say(frame(frames.OUT, {OBEYED!r}.encode()) + frame(frames.ERR, {OBEYED!r}.encode()))"
    code = f"{TAKE}os.write(2, {OBEYED!r}.encode())\n{sent}\nsay(frame(frames.EXIT, b'0'))\nos.read(0, 9)"
    put_ssh_in_python(tmp_path / "bin", code)
    for args in (["--host", "h", "list"], ["list", "--hosts", "h"], ["interact", "list", "--hosts", "h"],
                 ["wait-any", "--hosts", "h"], ["watch", "--hosts", "h"]):  # fmt: skip
        _, shown = on_a_terminal([*PROGRAM, *args])
        for piece in (b"\x1b]", b"\x1b[2J", b"\x1b[6n", b"\x07"):
            assert piece not in shown, args
    to_a_pipe = run("--host", "h", "list")
    assert to_a_pipe.out == OBEYED


ROWS: list[object] = [
    [], {}, [{}], [1], [{"agentInstance": OBEYED, "status": 3}], "x", None, [[]],
    [{"taskId": ["t"], "agentInstance": "a", "id": {}, "question": None, "options": 3, "askedAt": []}],
]  # fmt: skip


@pytest.mark.parametrize("rows", [ROWS[-1], *alike(*[(rows,) for rows in ROWS[:-1]])])
def test_rows_of_another_form_are_no_bug(tmp_path: Path, rows: object) -> None:
    sent = json.dumps(rows).encode()
    put_ssh_in_python(
        tmp_path / "bin", f"{TAKE}say(frame(frames.OUT, {sent!r}) + frame(frames.EXIT, b'0'))\nos.read(0, 9)"
    )
    new_task()
    for args in (["list"], ["tasks"], ["interact", "list"], ["interact", "respond", "x"], ["wait-any"]):
        ended = run(*args, "--hosts", "h,here", "--json", check=False)
        assert "bug" not in ended.err, ended
        code, shown = on_a_terminal([*PROGRAM, *args, "--hosts", "h,here"])
        assert b"bug" not in shown
        assert b"\x1b]" not in shown
        assert code in {0, 1, 2, 3, 6}


def test_an_endless_answer_is_cut_off(tmp_path: Path) -> None:
    put_ssh_in_python(tmp_path / "bin", f"{TAKE}while True: say(frame(frames.OUT, b'x' * 65536))")
    ended = run("list", "--hosts", "h", check=False, timeout=60)
    assert ended.code == 1
    assert "answers more than" in ended.err
    ended = run("wait-any", "--hosts", "h", check=False, timeout=60)
    assert ended.code == 1
    assert "a line without end" in ended.err


def test_an_end_that_is_none_is_not_taken(root: Path, tmp_path: Path) -> None:
    sent = 'say(frame(frames.OUT, b\'{"status": 3, "x": 1}\\n\') + frame(frames.PRINT))'
    put_ssh_in_python(tmp_path / "bin", f"{TAKE}{sent}\nos.read(0, 9)\ntime.sleep(600)")
    new_task()
    spawn(worker("exits", 0), "--wait", name="w1")
    ended = run("wait-any", "--hosts", "h,here")
    assert ended.out == "here: w1 completed\n"
    assert "h does not answer as agentctl does" in run("wait-any", "--hosts", "h,here", check=False).err


def test_what_stdin_holds_is_read_only_by_who_reads_it(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    new_task()
    script = f"while read line; do {' '.join(PROGRAM)} --host h tasks >/dev/null; echo got $line; done"
    done = subprocess.run(["sh", "-c", script], input=b"1\n2\n3\n", capture_output=True, timeout=60, check=True)
    assert done.stdout == b"got 1\ngot 2\ngot 3\n"
    batch = json.dumps({"name": "big", "argv": ["true", "x" * 100_000]}) + "\n"
    rows = run("--host", "h", "spawn", "--json", "--batch", "-", stdin=batch + batch.replace("big", "also")).json
    assert [row["agentInstance"] for row in rows] == ["big", "also"]
    run("wait-all")


def test_ctrl_c_interrupts_the_command_and_not_its_worker(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="w1")
    for args in (["--host", "h", "wait", "w1"], ["wait-any", "--hosts", "h,here"], ["watch", "--hosts", "h"]):
        process = start(*args, group=0)
        wait_until(_far_ends, what="the far end to run its command")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (process.returncode, "interrupted" in err) == (130, True), (args, out, err)
        wait_until(lambda: not _far_ends(), what="the far end to leave")
    (tmp_path / "gate").touch()
    task.ended("w1")


def test_ctrl_c_does_not_wait_for_a_host_that_is_silent(root: Path, tmp_path: Path) -> None:
    put_ssh_in_python(tmp_path / "bin", f"open({str(tmp_path / 'began')!r}, 'w').close()\ntime.sleep(600)")
    new_task()
    for args in (["list", "--hosts", "h,here"], ["wait-any", "--hosts", "h"], ["--host", "h", "list"]):
        process = start(*args, group=0)
        wait_until((tmp_path / "began").exists, what="ssh to begin")
        (tmp_path / "began").unlink()
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 130, args
        assert time.monotonic() - began < 10, args


def _far_ends() -> list[int]:
    """Return the processes that carry out an order: children of a far end."""
    last = (["_far"], [str(Path(agentctl.__file__).parent / "interfaces/cli/here.py")])
    ends = [one for one in psutil.process_iter() if words_of(one)[-1:] in last]
    ours = [one for one in ends if variables_of(one).get("HOME") == os.environ["HOME"]]
    return [child.pid for one in ours for child in children_of(one)]


def test_a_reader_that_leaves_ends_the_command(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    task = new_task()
    spawn(["sh", "-c", f"until [ -e {tmp_path}/gate ]; do echo line; sleep 0.05; done"], name="w1")
    script = f"{' '.join(PROGRAM)} --host h logs w1 --follow | head -n 1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == (b"line\n", b"")
    wait_until(lambda: not _far_ends(), what="the far end to leave")
    (tmp_path / "gate").touch()
    task.ended("w1")


def test_an_end_that_nobody_here_could_read_is_given_again(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="w1")
    process = start("--host", "h", "wait-any")
    wait_until(_far_ends, what="the far end to run its command")
    assert process.stdout is not None
    process.stdout.close()
    (tmp_path / "gate").touch()
    assert process.wait(timeout=20) == 1
    task.ended("w1")
    assert run("--host", "h", "wait-any").out == "w1 completed [given again]\n"
    assert run("wait-any", "--hosts", "h", check=False).code == 6


def test_completion_offers_hosts_and_their_names_and_never_more(root: Path, tmp_path: Path) -> None:
    define_hosts({"build": "b", "gpu": "g"})
    put_ssh(tmp_path / "bin", f"exec {FAR_END}")
    task = new_task()
    spawn(worker("exits", 0), "--wait", name="w1")

    def ask(folder: Path) -> None:
        (folder / "interactions").mkdir(parents=True)
        question = {"id": "q1", "kind": "confirm", "question": "Go on?"}
        (folder / "interactions" / "q1.json").write_text(json.dumps(question))

    def offered(line: str) -> list[str]:
        env = {"_AGENTCTL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        return run(env=env, check=False).out.split()

    assert offered("agentctl --host ") == ["build", "gpu"]
    assert offered("agentctl list --hosts gpu,") == ["gpu,all", "gpu,here", "gpu,build"]
    assert offered("agentctl --host build show ") == ["w1"]
    assert offered("agentctl --host build list --task ") == ["t1"]
    assert offered("agentctl --host build spawn --effort m") == ["medium"]
    assert offered("agentctl --host build wait-any --for failed,b") == ["failed,blocked"]
    ask(task.agent("w2"))
    assert offered("agentctl --host build interact respond ") == ["w2"]
    assert offered("agentctl --host build interact respond w2 --id q1 ") == ["yes", "no"]
    evil = "w1\\nx$(touch evil)\\n-x\\n`id`\\n"
    put_ssh_in_python(
        tmp_path / "bin", f"{TAKE}say(frame(frames.OUT, b'{evil}') + frame(frames.EXIT, b'0'))\nos.read(0, 9)"
    )
    assert offered("agentctl --host build show ") == ["w1"]
    put_ssh_in_python(tmp_path / "bin", "time.sleep(600)")
    began = time.monotonic()
    assert offered("agentctl --host build show ") == []
    assert time.monotonic() - began < 10


def test_a_worker_is_no_person_on_another_host_either(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec env -u AGENTCTL_INSTANCE -u AGENTCTL_TASK {FAR_END}")
    new_task()
    there = f"{' '.join(PROGRAM)} --host h"
    calls = [f"{there} trust {tmp_path}", f"{there} --host h notify off x", f"{there} list >/dev/null"]
    inner = "; ".join(f"{call}; echo code $?" for call in calls)
    spawn(["sh", "-c", inner], "--wait", name="w1")
    assert run("result", "w1").out == "code 1\ncode 1\ncode 0\n"
    for name in ("trust", "notify"):
        assert f"a worker may not call {name} on another host" in run("logs", "w1").out


def test_a_worker_may_do_nothing_on_another_host_that_a_person_alone_may_do_here(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", f"exec env -u AGENTCTL_INSTANCE -u AGENTCTL_TASK {FAR_END}")
    new_task()
    there = f"{' '.join(PROGRAM)} --host h"
    refused = {
        "new X --notify me": "may not choose where a person is told",
        "doctor --runner loopback": "may not test a runner",
        "doctor --free-account x": "may not free the account",
        "spawn --runner slurm --runner-arg=--account=x -- true": "only a person may pass options to the engine",
    }
    spawn(["sh", "-c", "; ".join(f"{there} {call}; echo code $?" for call in refused)], "--wait", name="w1")
    said = run("logs", "w1").out
    for call, why in refused.items():
        assert why in said, call
    assert run("result", "w1").out == "code 1\n" * len(refused)


def test_a_form_of_a_worker_of_another_host_is_no_persons_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the client, and would fill in the form itself."""
    assert not who_answers(by_form=True).is_agent
    monkeypatch.setenv(FROM_WORKER, "1")
    assert who_answers(by_form=True).is_agent

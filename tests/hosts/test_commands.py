"""At stake: a command on another machine does what it does at home: output, exit code, input, questions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import agentctl
from tests.hosts.machines import Machine
from tests.support import PROGRAM, run, start, wait_until, worker
from tests.terminal import Terminal, on_a_terminal

Both = tuple[Machine, Machine]
AGENTCTL = " ".join(PROGRAM)


def test_commands_results_and_exit_codes(both: Both) -> None:
    a, b = both
    assert run("--host", "a", "spawn", "--name", "w1", "--", "sh", "-c", "echo hello; exit 3").out.startswith("w1 runn")
    ended = run("--host", "a", "wait", "w1", "--json", check=False)
    assert (ended.code, ended.json["exitCode"]) == (7, 3)
    codes = {"result w1": 7, "list --json": 0, "show nobody": 3, "list --wat": 2, "--version": 0, "interact ask x": 1}
    assert [run("--host", "a", "wait-any", check=False).code for _ in range(2)] == [0, 6]
    for line, code in codes.items():
        args = line.split()
        there = run("--host", "a", *args, check=False)
        assert there.code == code, there
        at_home = a.run(*args, check=False)
        # What is advised there has to be typed here.
        advice = at_home.err.replace("agentctl spawn", "agentctl --host a spawn")
        assert (there.out, there.err, there.code) == (at_home.out, advice, at_home.code)
    for code in (0, 1, 130, 255):
        assert run("--host", "b", "spawn", "--wait", "--", *worker("exits", code), check=False).code == code
    assert [row["taskId"] for row in run("--host", "b", "tasks", "--json").json] == ["on-b"]
    assert "w1" not in [row["agentInstance"] for row in b.run("list", "--json").json]


def test_bytes_of_every_value_pass_unchanged(both: Both) -> None:
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"
    run("--host", "a", "spawn", "--wait", "--name", "w1", "--", sys.executable, "-c", script)
    argv = [*PROGRAM, "--host", "a", "logs", "w1", "--raw"]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=True)
    assert done.stdout == bytes(range(256)) * 1000


def test_a_prompt_of_200_kb_and_one_with_nuls(both: Both) -> None:
    a, _ = both
    folder = a.home / ".config" / "agentctl" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    text = "---\ndescription: Counts.\nargv: [wc, -c]\npromptOnStdin: true\n---\n"
    (folder / "counts.md").write_text(text, encoding="utf-8")
    prompt = "'\"$`\\ \n!" * 25_000
    run("--host", "a", "spawn", "--agent", "counts", "--name", "w1", "-", stdin=prompt)
    run("--host", "a", "wait", "w1")
    assert int(run("--host", "a", "result", "w1").out.split()[0]) == len(prompt) == 200_000
    argument = run("--host", "a", "spawn", "--name", "w2", "--agent", "counts", 'it\'s "$HOME" `id` \\ \t!')
    assert argument.out.startswith("w2 running")
    run("--host", "a", "wait", "w2")
    spec = json.loads((a.work / ".agentctl/tasks/on-a/agents/w2/spec.json").read_text(encoding="utf-8"))
    assert 'it\'s "$HOME" `id` \\ \t!' in json.dumps(spec["order"]).encode().decode("unicode_escape")
    with_nuls = "a\0b\0" * 1000
    there = run("--host", "a", "spawn", "--agent", "counts", "--name", "w3", "-", stdin=with_nuls, check=False)
    at_home = subprocess.run(
        [*PROGRAM, "spawn", "--agent", "counts", "--name", "w3", "-"], input=with_nuls.encode(), cwd=a.work,
        env={**os.environ, **a.environ()}, capture_output=True, timeout=60, check=False,
    ) if there.code else None  # fmt: skip
    if at_home is not None:
        assert (there.code, there.err) == (at_home.returncode, at_home.stderr.decode())
    else:
        run("--host", "a", "wait", "w3")
        assert int(run("--host", "a", "result", "w3").out.split()[0]) == len(with_nuls)


def test_questions_of_several_machines(both: Both) -> None:
    a, b = both
    for machine in both:
        ask = f"{AGENTCTL} interact ask --option x=Ex --option y=Why 'Which on {machine.name}?'"
        run("--host", machine.name, "spawn", "--name", f"q-{machine.name}", "--shell", ask)
        run("--host", machine.name, "spawn", "--name", "same", "--shell", ask)
    wait_until(lambda: run("interact", "list", "--hosts", "a,b", "--json").json, accept=lambda rows: len(rows) == 4)
    rows = run("interact", "list", "--hosts", "a,b", "--json").json
    assert {(row["host"], row["agentInstance"]) for row in rows} == {
        ("a", "q-a"), ("a", "same"), ("b", "q-b"), ("b", "same"),
    }  # fmt: skip
    _, shown = on_a_terminal([*PROGRAM, "interact", "list", "--hosts", "a,b"])
    assert b"q-b in on-b on b asks: Which on b?" in shown
    assert b"agentctl --host b answer q-b --task on-b --id q1 ANSWER (ANSWER: x, y)" in shown
    unseen = run("interact", "respond", "--hosts", "a,b", "q-b", "x", check=False)
    assert unseen.code == 2
    assert "agentctl --host b answer q-b --task on-b --id q1 ANSWER (ANSWER: x, y)" in unseen.err
    terminal = Terminal([*PROGRAM, "interact", "respond", "--hosts", "a,b", "q-b", "x"])
    terminal.until("answer it with x? [y/N] ")
    assert b"Which on b?" in terminal.sent
    terminal.write(b"y\n")
    assert terminal.end() == 0
    assert b"answered q1 of q-b in on-b: x on b" in terminal.sent
    unclear = run("interact", "respond", "--hosts", "a,b", "same", "x", check=False)
    assert unclear.code == 2
    assert "q1 of same (task on-a on a)" in unclear.err
    assert run("interact", "respond", "--hosts", "a,b", "nobody", "x", check=False).code == 3
    code, wrong = on_a_terminal([*PROGRAM, "interact", "respond", "--hosts", "a,b", "q-a", "z"])
    assert (code, b"'z' is not an option" in wrong) == (2, True)
    b.kill()
    refused = run("interact", "respond", "--hosts", "a,b", "q-a", "x", check=False)
    assert refused.code == 1
    assert "b cannot be asked, and may have the question" in refused.err
    assert run("--host", "a", "interact", "respond", "q-a", "--id", "q1", "x", "--json").json["answer"] == "x"
    assert a.run("wait", "q-a").out == "q-a completed\n"
    for machine in both:
        machine.run("cancel", "--all", check=False)


def test_lists_of_several_machines_and_one_that_does_not_answer(both: Both) -> None:
    _, b = both
    run("--host", "a", "spawn", "--wait", "--name", "w1", "--", "true")
    run("--host", "b", "spawn", "--wait", "--name", "w2", "--", "false", check=False)
    rows = run("list", "--hosts", "b,a", "--json").json
    assert [(row["host"], row["agentInstance"], row["status"]) for row in rows] == [
        ("b", "w2", "failed"), ("a", "w1", "completed"),
    ]  # fmt: skip
    assert [line.split("\t")[:3] for line in run("list", "--hosts", "a,b").out.splitlines()] == [
        ["a", "w1", "completed"], ["b", "w2", "failed"],
    ]  # fmt: skip
    everywhere = run("tasks", "--hosts", "all", check=False)
    assert (everywhere.code, "error: here: there is no" in everywhere.err) == (1, True)
    b.kill()
    partly = run("tasks", "--hosts", "a,b", "--json", check=False)
    assert partly.code == 1
    assert [(row["host"], row.get("taskId")) for row in partly.json] == [("a", "on-a"), ("b", None)]
    assert partly.json[1]["error"].startswith("b does not answer: ")
    assert partly.err.startswith("error: b does not answer: ")
    _, drawn = on_a_terminal([*PROGRAM, "list", "--hosts", "a,b"])
    assert b"w1" in drawn
    assert b"b does not answer" in drawn


def test_what_is_there_instead_of_agentctl(both: Both) -> None:
    a, b = both
    (a.home / ".bashrc").write_text("echo Welcome; echo careful >&2; read -t 0.3 -n 1 x\n", encoding="utf-8")
    listed = run("--host", "a", "tasks", "--json")
    assert [row["taskId"] for row in listed.json] == ["on-a"]
    a.set_program("exit 127")
    missing = run("--host", "a", "tasks", check=False)
    assert (missing.code, missing.out) == (1, "")
    assert "agentctl was not found on a" in missing.err
    code = "import agentctl; agentctl.__version__ = '9.8'; from agentctl.interfaces.cli.app import run; run()"
    b.set_program(f'exec {sys.executable} -c "{code}" "$@"')
    other = run("--host", "b", "tasks")
    assert other.err == f"warning: b has agentctl 9.8, and this is {agentctl.__version__}\n"
    shutil.rmtree(b.work)
    gone = run("--host", "b", "tasks", check=False)
    assert gone.code == 3
    assert f"cannot go to {b.work}" in gone.err


def test_completion_of_names_there(both: Both) -> None:
    run("--host", "a", "spawn", "--wait", "--name", "only-on-a", "--", "true")
    line = "agentctl --host a show "
    env = {"_AGENTCTL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "4"}
    assert run(env=env).out.split() == ["only-on-a"]
    both[0].kill()
    assert run(env=env).out.split() == []


def test_a_host_by_way_of_another(both: Both) -> None:
    """Which hosts there are on the way is for the configuration of each machine to say."""
    there = both[0].home / ".config" / "agentctl"
    shutil.copy(Path(os.environ["HOME"], ".config", "agentctl", "config.yaml"), there)
    rows = run("--host", "a", "--host", "b", "tasks", "--json").json
    assert [row["taskId"] for row in rows] == ["on-b"]


def test_a_shared_connection_serves_many_commands_and_outlives_them(both: Both, tmp_path: Path) -> None:
    """The first ssh stays as the master, with the stderr of the command that began it: nobody may wait for its end."""
    config = tmp_path / "machines" / "keys" / "config"
    with tempfile.TemporaryDirectory(prefix="agentctl-ssh-") as folder:
        shared = f"ControlMaster auto\nControlPath {folder}/%C\nControlPersist 60\n"
        config.write_text(shared + config.read_text(encoding="utf-8"), encoding="utf-8")
        try:
            for _ in range(2):
                assert [row["taskId"] for row in run("--host", "a", "tasks", "--json").json] == ["on-a"]
            process = start(
                "--host", "a", "spawn", "--name", "w1", "--wait", "--", *worker("waits_for_file", tmp_path / "gate")
            )
            wait_until(
                lambda: both[0].run("list", "--json").json,
                accept=lambda rows: [row["status"] for row in rows] == ["running"],
            )
            process.kill()
            process.communicate(timeout=20)
            both[0].is_left_alone()
            assert [row["host"] for row in run("list", "--hosts", "a", "--json").json] == ["a"]
            assert len(both[0].connections()) <= 2
        finally:
            subprocess.run(["ssh", "-O", "exit", "a"], capture_output=True, timeout=20, check=False)
    (tmp_path / "gate").touch()
    both[0].run("wait-all")


def test_watch_tells_the_lines_of_both(both: Both, tmp_path: Path) -> None:
    a, b = both
    process = start("watch", "--hosts", "a,b")
    assert process.stdout is not None

    def until(*texts: str) -> None:
        """Read until all of these were told."""
        left, seen = set(texts), list[str]()
        while left:
            line = process.stdout.readline()  # type: ignore[union-attr]
            assert line, (left, seen)
            seen.append(line)
            left -= {text for text in left if text in line}

    until("a: No worker yet", "b: No worker yet")
    b.run("spawn", "--name", "w1", "--", *worker("waits_for_file", tmp_path / "gate"))
    until("b: w1 of on-b is running")
    b.kill()
    until("the connection to b broke; it is tried again")
    a.run("spawn", "--wait", "--name", "w2", "--", "true")
    until("a: w2 of on-a completed")
    b.start()
    until("b answers again")
    until("b: w1 of on-b is running")
    (tmp_path / "gate").touch()
    until("b: w1 of on-b completed")
    process.terminate()
    process.wait(timeout=20)
    for machine in both:
        machine.is_left_alone()


@pytest.mark.parametrize("shell", ["bash", "dash", "fish", "tcsh", "zsh"])
def test_no_login_shell_reads_any_of_it(both: Both, tmp_path: Path, shell: str) -> None:
    """Sshd has the login shell run the line; here the far end's own shell does, with the same line."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    a, _ = both
    client = tmp_path / "machines" / "client" / "ssh"
    text = client.read_text(encoding="utf-8")
    line = 'for last; do :; done; exec env -C "$WORK" HOME="$THERE" PATH="$BIN:$PATH" "$SHELL_THERE" -c "$last"'
    names = f"WORK={a.work}; THERE={a.home}; BIN={a.folder / 'bin'}; SHELL_THERE={program}"
    client.write_text(f"#!/bin/sh\n{names}\n{line}\n", encoding="utf-8")
    try:
        run("--host", "a", "spawn", "--wait", "--name", "w1", "--", "echo", "$HOME 'x' \"y\" !! `id`; exit 3")
        assert run("--host", "a", "result", "w1").out == "$HOME 'x' \"y\" !! `id`; exit 3\n"
    finally:
        client.write_text(text, encoding="utf-8")

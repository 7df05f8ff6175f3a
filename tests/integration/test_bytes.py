"""At stake: a worker gets the bytes that were typed, whatever the locale; otherwise it works on another file."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, define
from tests.locales import LOCALES, in_locale
from tests.steps import Task, new_task, spawn
from tests.support import REPOSITORY, alike, run, wait_until
from tests.terminal import on_a_terminal

pytestmark = [pytest.mark.usefixtures("root"), pytest.mark.slow]

#: The same letters in ISO-8859-1, EUC-JP and UTF-8, and bytes that are none of these: each is another file.
NAMES = [b"r\xe9.txt", "r\xe9.txt".encode(), b"\xc6\xfc\xcb\xdc", "\u65e5\u672c".encode(), b"\xff\x80 \xc3\xa9"]
TYPED = " ".join(map(os.fsdecode, NAMES))
#: Python itself cannot look for modules in a current folder whose name its locale does not encode.
PROGRAM = [sys.executable, "-P", "-m", "agentctl"]


@pytest.fixture(params=[*LOCALES, *alike("C", "C.UTF-8")])
def locale(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Put this test and what it starts into a locale."""
    name: str = request.param
    settings = in_locale(tmp_path_factory.mktemp("locales"), name) if name in LOCALES else {"LC_ALL": name}
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    return name


def output_of(task: Task, instance: str) -> bytes:
    return (task.agent(instance) / "stdout.log").read_bytes()


def test_no_other_file_is_touched(locale: str) -> None:
    new_task()
    for name in NAMES:
        Path(os.fsdecode(name)).touch()
    for removed, left in ((NAMES[::2], NAMES[1::2]), (NAMES[1::2], [])):
        spawn(["rm", *map(os.fsdecode, removed)], "--wait")
        assert sorted(map(os.fsencode, os.listdir("."))) == sorted(left)


def test_a_project_and_its_root_may_have_any_name(locale: str, tmp_path: Path) -> None:
    project, env = tmp_path / TYPED, {"AGENTCTL_ROOT": None}
    project.mkdir()
    run("new", "t", "--root", project / ".agentctl", env=env)
    run("spawn", "--wait", "--name", "a", "--", "pwd", cwd=project, env=env)
    run("spawn", "--wait", "--name", "b", "--cwd", project, "--root", project / ".agentctl", "--", "pwd", env=env)
    task = Task(project / ".agentctl" / "tasks" / "t")
    assert [output_of(task, "a"), output_of(task, "b")] == [os.fsencode(project) + b"\n"] * 2
    assert json.loads((task.agent("a") / "spec.json").read_bytes())["cwd"] == str(project)


def test_a_line_of_shell_and_a_variable_are_what_was_typed(locale: str) -> None:
    task = new_task()
    line = f'echo {shlex.quote(TYPED)}; echo "$X"; env'
    run("spawn", "--wait", "--name", "w", "--env", f"X={TYPED}", "--shell", line)
    shown = output_of(task, "w").split(b"\n")
    assert shown[:2] == [os.fsencode(TYPED)] * 2
    assert f"LC_ALL={locale}".encode() in shown
    assert not [row for row in shown if row.startswith(b"PYTHONUTF8")]


def test_a_batch_is_utf8_with_or_without_a_byte_order_mark(locale: str) -> None:
    task = new_task()
    text = json.dumps({"argv": ["echo", "\u65e5\u672c \xe9"]}, ensure_ascii=False)
    Path("plain").write_text(text, encoding="utf-8")
    Path("marked").write_text(f"\ufeff{text}", encoding="utf-8")
    run("spawn", "--batch", "plain")
    run("spawn", "--batch", "marked")
    run("spawn", "--batch", "-", stdin=f"\ufeff{text}")
    run("wait-all")
    assert [output_of(task, f"echo-{number}") for number in (1, 2, 3)] == ["\u65e5\u672c \xe9\n".encode()] * 3


@pytest.mark.parametrize("command", ["list", "show w", "events", "spawn --queue -- echo"])
def test_json_is_utf8_whatever_was_typed(locale: str, command: str) -> None:
    new_task()
    spawn(["echo", TYPED], "--wait", name="w")
    words = command.split()
    typed = [TYPED] if "--" in words else []
    printed = subprocess.run([*PROGRAM, words[0], "--json", *words[1:], *typed], capture_output=True, check=True).stdout
    for line in printed.decode("utf-8").splitlines():
        json.loads(line)
    assert typed or TYPED in json.dumps(list(map(json.loads, printed.splitlines())), ensure_ascii=False)


#: Letters in the encoding of a locale, and as text.
LETTERS = {"de_DE.ISO-8859-1": (b"caf\xe9", "caf\xe9"), "ja_JP.EUC-JP": (b"\xc6\xfc\xcb\xdc", "\u65e5\u672c")}
IN_UTF8 = ("caf\xe9 \u65e5".encode(), "caf\xe9 \u65e5")


def test_a_question_is_readable_and_its_answer_is_what_was_typed(locale: str) -> None:
    task = new_task()
    for name, (typed, text) in {"own": LETTERS.get(locale, IN_UTF8), "utf8": IN_UTF8}.items():
        ask = shlex.join([*PROGRAM, "interact", "ask", "--id", name, os.fsdecode(typed)])
        spawn(["/bin/sh", "-c", f'answer=$({ask}); printf %s "$answer"'], name=name)
        asked = wait_until(lambda: run("interact", "list", "--json").json)
        assert asked[0]["question"] == text
        run("interact", "respond", name, "--id", name, os.fsdecode(typed))
        run("wait", name)
        assert output_of(task, name) == typed


def test_an_agent_that_reads_utf8_gets_the_letters_that_were_typed(
    locale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_world(tmp_path, monkeypatch)
    typed, text = LETTERS.get(locale, IN_UTF8)
    agent(f"say {os.fsdecode(typed)}", "--wait")
    assert text in run("result", "a").out


def test_an_agent_is_driven_by_the_bytes_that_were_typed(
    locale: str, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    define(root, "echo", 'printf "%s " "$1" && pwd')
    define(root, "reads", "cat; echo; pwd", promptOnStdin=True)
    folder = tmp_path / TYPED
    folder.mkdir()
    run("spawn", "--wait", "--agent", "echo", "--name", "a", "--cwd", folder, TYPED)
    run("spawn", "--wait", "--agent", "reads", "--name", "b", "--cwd", folder, TYPED)
    assert output_of(task, "a") == os.fsencode(f"{TYPED} {folder}\n")
    assert output_of(task, "b") == os.fsencode(f"{TYPED}\n{folder}\n")


def test_an_agent_program_that_cannot_be_told_of_its_folder_is_not_started(
    locale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON has no name for it but that of another folder."""
    agent_world(tmp_path, monkeypatch)
    folder, other = tmp_path / os.fsdecode(b"caf\xe9"), tmp_path / "caf\ufffd"
    for one in (folder, other):
        one.mkdir()
    told = run("spawn", "--agent", "general", "--cwd", folder, "touch it", check=False)
    assert (told.code, "that name is not UTF-8" in told.err, "choose another --cwd" in told.err) == (1, True, True)
    run("new", "Another", "--root", folder / ".agentctl", env={"AGENTCTL_ROOT": None})
    told = run("spawn", "--root", folder / ".agentctl", "--agent", "general", "say it", check=False)
    assert (told.code, "keep the root elsewhere" in told.err) == (1, True)


def test_a_terminal_gets_the_letters_of_its_locale(locale: str) -> None:
    new_task()
    Path("caf\xe9").mkdir()
    spawn(["true", os.fsdecode(b"\x9b31m")], "--wait", "--cwd", "caf\xe9", name="w")
    _, shown = on_a_terminal([*PROGRAM, "show", "w"])
    letters = {"de_DE.ISO-8859-1": b"caf\xe9", "ja_JP.EUC-JP": b"caf\x8f\xab\xb1"}.get(locale, "caf\xe9".encode())
    assert b"/" + letters in shown
    assert b"\\udc9b31m" in shown, "a terminal in ISO-8859-1 would obey that byte"
    assert "/caf\xe9" in run("show", "w").out


@pytest.mark.parametrize("name", LOCALES)
def test_a_program_in_another_encoding_is_refused_by_the_python_interface(name: str, tmp_path: Path) -> None:
    new_task()
    env = {**os.environ, **in_locale(tmp_path, name), "PYTHONPATH": str(REPOSITORY)}
    code = """
import agentctl
try:
    print(agentctl.spawn(argv=["true"]).agent_instance)
except agentctl.AgentctlError as error:
    print(error.hint)
"""
    for options, said in (
        ((), "start it with python -X utf8, or with PYTHONUTF8=1 in its environment"),
        (("-X", "utf8"), "true-1"),
    ):
        done = subprocess.run(
            [sys.executable, *options, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        assert done.stdout == f"{said}\n", done.stderr
    run("wait-all")

"""At stake: --host starts nothing but the user's own ssh, with a line in which no option or shell can find anything.

The tests with a real sshd, and of hosts that misbehave, are in `tests/hosts`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakessh import FAR_END, define_hosts, put_ssh
from tests.inside import call
from tests.steps import new_task, spawn
from tests.support import run, worker

pytestmark = pytest.mark.usefixtures("root")


def test_ssh_gets_a_command_line_that_says_nothing_of_the_command(root: Path, tmp_path: Path) -> None:
    define_hosts({"b": {"ssh": "me@b.example", "agentctl": "/opt/agentctl"}})
    put_ssh(tmp_path / "bin", f'printf "%s\\n" "$@" > {tmp_path}/argv; exec {FAR_END}')
    new_task()
    run("--host", "b", "spawn", "--env", "SECRET=hunter2", "--", "true")
    argv = (tmp_path / "argv").read_text(encoding="utf-8").splitlines()
    assert argv[-3:] == ["--", "me@b.example", "/opt/agentctl _far"]
    assert "hunter2" not in str(argv)
    run("--host", "elsewhere", "list")
    argv = (tmp_path / "argv").read_text(encoding="utf-8").splitlines()
    assert argv[-3:] == ["--", "elsewhere", """sh -c 'PATH="$PATH:$HOME/.local/bin"; exec agentctl _far'"""]


@pytest.mark.parametrize("name", ["-oProxyCommand=id", "a b", "a;id", "$(id)", "", "all"])
def test_what_names_no_host_starts_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    put_ssh(tmp_path / "bin", f"touch {tmp_path}/started")
    refused = call(capsys, "--host", name, "list")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error: ")
    assert not (tmp_path / "started").exists()


def test_a_config_that_others_can_write_defines_no_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    file = define_hosts({"b": "b"})
    file.chmod(0o666)
    refused = call(capsys, "--host", "b", "list")
    assert (refused.code, refused.out) == (2, "")
    assert "others can write it" in refused.err


@pytest.mark.parametrize("args", [("list", "--host", "h"), ("--version", "--host"), ("--host",), ("--host", "h")])
def test_a_wrong_command_line_says_so(capsys: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    refused = call(capsys, *args)
    assert refused.code in {0, 2}
    assert "bug" not in refused.err


@pytest.mark.slow
def test_this_machine_is_a_host_like_the_others(root: Path, tmp_path: Path) -> None:
    put_ssh(tmp_path / "bin", "exit 255")
    new_task()
    assert spawn(worker("exits", 3), "--wait", name="w1", check=False).code == 3
    assert run("--host", "here", "list", "--json").json == run("list", "--json").json
    listed = run("list", "--hosts", "here,h", "--json", check=False)
    assert (listed.code, [row["host"] for row in listed.json]) == (1, ["here", "h"])
    assert listed.err.startswith("error: h does not answer\n")
    assert run("wait-any", "--hosts", "here").out == "here: w1 failed (exit_code 3)\n"
    left = run("wait-any", "--hosts", "here", check=False)
    assert (left.code, left.out) == (6, "")

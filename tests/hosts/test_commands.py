"""At stake: a command on another machine does what it does at home, with the same output, exit code and input."""

from __future__ import annotations

from tests.hosts.machines import Machine
from tests.support import run, worker


def test_commands_questions_and_results(both: tuple[Machine, Machine]) -> None:
    a, _ = both
    assert run("--host", "a", "spawn", "--name", "w1", "--", "sh", "-c", "echo hello; exit 3").out.startswith("w1 runn")
    ended = run("--host", "a", "wait", "w1", "--json", check=False)
    assert (ended.code, ended.json["exitCode"]) == (7, 3)
    assert run("--host", "a", "result", "w1", check=False).out == "hello\n"
    print(worker("exits", 0), a)

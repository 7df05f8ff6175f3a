"""At stake: what a person denies in their own settings of a program is denied, and nobody else speaks to it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from tests.agent_steps import ends
from tests.steps import Task, new_task
from tests.support import WORKERS, is_alive, run, wait_until

#: A cancel that needs a second signal takes longer than a test waits.
GRACE_S = 40
#: Prints the person's settings by a script of the test's, once it has been started itself; or notes how it was started,
#: and speaks ACP.
PROGRAM = f"""#!/bin/sh
if [ "$1" = show ]; then
    until [ -s starts ]; do sleep 0.01; done
    exec sh ./show
fi
echo "$$ $SECRET $RULES" >>starts
exec {sys.executable} {WORKERS / "acp_agent.py"} polite
"""
ROW = {
    "program": "shows",
    "ownDenials": ["show"],
    "busy": ["is locked", "Failed query"],
    "secrets": ["SECRET"],
    "asking": {"permission": {"*": "ask"}, "environ": {"RULES": "{permission}"}},
}


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task, and a program that is asked for its user's denials."""
    program = tmp_path / "bin" / "shows"
    program.parent.mkdir()
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SECRET", "the-person-s-own")
    made = new_task(cap=3, grace=GRACE_S)
    (Path.home() / ".config" / "agentctl" / "acp.yaml").write_text(yaml.safe_dump({"shows": ROW}), encoding="utf-8")
    return made


def play(show: str, name: str = "a") -> dict[str, object]:
    """Run an agent of the program, which shows settings by this script; return how it ended."""
    Path("show").write_text(show, encoding="utf-8")
    run("spawn", "--agent", "general", "--driver", "shows", "--name", name, "do it")
    ended: dict[str, object] = ends(name)
    return ended


def starts() -> list[tuple[int, str, object]]:
    """Return the starts of the program itself: pid, secret, and the rules that it was given."""
    lines = [line.split(maxsplit=2) for line in Path("starts").read_text(encoding="utf-8").splitlines()]
    return [(int(pid), secret, json.loads(rules)) for pid, secret, rules in lines]


def test_who_denies_nothing_has_it_started_once(task: Task) -> None:
    assert play('echo \'{"permission": {"bash": "allow"}}\'')["status"] == "completed"
    assert [rules for _, _, rules in starts()] == [{"*": "ask"}]


def test_what_is_denied_is_so_before_anything_is_said(task: Task) -> None:
    """The program that was started without it has read nothing, and is gone."""
    assert play('echo \'{"permission": {"bash": "deny"}}\'')["status"] == "completed"
    (first, _, without), (_, _, rules) = starts()
    assert (without, rules) == ({"*": "ask"}, {"*": "ask", "bash": "deny"})
    assert not is_alive(first)
    assert "initialize" in (task.agent("a") / "dialogue.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", ["Error: database is locked", "Failed query:\n CREATE TABLE\n params: "])
def test_a_question_that_meets_another_start_is_asked_again(task: Task, words: str) -> None:
    line = f"mv free taken 2>/dev/null && echo '{{}}' && exit; touch free; printf '%s' '{words}' >&2; exit 1"
    assert play(line)["status"] == "completed"
    assert Path("taken").exists()


@pytest.mark.parametrize(
    ("show", "words"),
    [
        ("echo 'bad settings:' >&2; echo 'line 3: no end' >&2; exit 4", "exit code 4: bad settings:\nline 3: no end"),
        ("kill -9 $$", "shows could not be queried: exit code -9"),
        ("echo no settings", "show printed no settings: what they deny would not be denied"),
        ("echo '[]'", "`--permissions own` starts it as your settings of it say"),
    ],
)  # fmt: skip
def test_without_an_answer_nothing_is_begun(task: Task, show: str, words: str) -> None:
    ended = play(show)
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert words in str(ended["message"])
    assert [pid for pid, _, _ in starts() if is_alive(pid)] == []
    assert "initialize" not in (task.agent("a") / "dialogue.jsonl").read_text(encoding="utf-8")


def test_a_cancel_does_not_wait_for_the_answer(task: Task) -> None:
    Path("show").write_text("touch asked; exec sleep 60", encoding="utf-8")
    run("spawn", "--agent", "general", "--driver", "shows", "--name", "a", "do it")
    wait_until(Path("asked").exists)
    told = run("cancel", "--json", "a", timeout=GRACE_S / 2).json
    assert (told["status"], told["survivors"]) == ("cancelled", [])


def test_a_secret_is_new_at_each_start_and_written_nowhere(task: Task, root: Path) -> None:
    for name in "ab":
        assert play("echo '{}'", name)["status"] == "completed"
    secrets = {secret for _, secret, _ in starts()}
    assert len(secrets) == 2
    assert {len(secret) for secret in secrets} == {32}
    found = [file for file in root.rglob("*") if file.is_file() for one in secrets if one.encode() in file.read_bytes()]
    assert found == []

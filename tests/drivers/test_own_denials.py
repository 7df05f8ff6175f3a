"""At stake: what a person denies in their own settings of a program is denied, and nobody else speaks to it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from tests.agent_steps import ends
from tests.snapshots import files_with
from tests.steps import Task, new_task
from tests.support import PROGRAM, WORKERS, is_alive, run, text_in, wait_until

#: A cancel that needs a second signal takes longer than a test waits.
GRACE_S = 40
#: Prints the person's settings by a script of the test's, once it has been started itself; or notes how it was started,
#: and speaks ACP.
SCRIPT = f"""#!/bin/sh
if [ "$1" = show ]; then
    until [ -s starts ]; do sleep 0.01; done
    exec sh ./show
fi
echo "$$ $SECRET $RULES" >>starts
test -e before && . ./before
exec {sys.executable} {WORKERS / "acp_agent.py"} polite
"""
ROW = {
    "program": "shows",
    "ownDenials": ["show"],
    "obeys": [".plugins"],
    "busy": ["is locked", "CREATE TABLE"],
    "secrets": ["SECRET"],
    "asking": {"permission": {"*": "ask"}, "environ": {"RULES": "{permission}"}},
}


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task, and a program that is asked for its user's denials."""
    program = tmp_path / "bin" / "shows"
    program.parent.mkdir()
    program.write_text(SCRIPT, encoding="utf-8")
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


def greetings(task: Task) -> int:
    """Return how often the program was spoken to."""
    return (task.agent("a") / "dialogue.jsonl").read_text(encoding="utf-8").count("initialize")


def test_who_denies_nothing_has_it_started_once(task: Task) -> None:
    assert play('echo \'{"permission": {"bash": "allow"}}\'')["status"] == "completed"
    assert [rules for _, _, rules in starts()] == [{"*": "ask"}]


def test_what_is_denied_is_so_before_anything_is_said(task: Task) -> None:
    """The program that was started without it has read nothing, and is gone."""
    assert play('echo \'{"permission": {"bash": "deny"}}\'')["status"] == "completed"
    (first, _, without), (_, _, rules) = starts()
    assert (without, rules) == ({"*": "ask"}, {"*": "ask", "bash": "deny"})
    assert not is_alive(first)
    assert greetings(task) == 1


def test_what_cannot_be_read_denies(task: Task) -> None:
    assert play("""echo '{"permission": {"bash": 5, "edit": {"*": ["?"]}, "read": null}}'""")["status"] == "completed"
    assert starts()[-1][2] == {"*": "ask", "bash": "deny", "edit": "deny"}


def test_what_a_project_has_by_then_is_looked_at_again(task: Task) -> None:
    ended = play("touch .plugins; echo '{}'")
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert ".plugins" in str(ended["message"])
    assert (len(starts()), greetings(task)) == (1, 0)


@pytest.mark.parametrize("words", ["Error: database is locked", "Failed query:\n CREATE TABLE\n" + "line\n" * 20])
@pytest.mark.parametrize("denied", ["", '"permission": {"bash": "deny"}'])
def test_a_question_that_meets_another_start_is_asked_again(task: Task, words: str, denied: str) -> None:
    line = f"mv free taken 2>/dev/null && echo '{{{denied}}}' && exit; touch free; printf '%s' '{words}' >&2; exit 1"
    assert play(line)["status"] == "completed"
    assert Path("taken").exists()
    assert (len(starts()), greetings(task)) == (3 if denied else 2, 1)
    assert starts()[-1][2] == ({"*": "ask", "bash": "deny"} if denied else {"*": "ask"})


@pytest.mark.parametrize(
    ("show", "words"),
    [
        ("echo 'in line 3: key sk-123' >&2; exit 4", "shows could not be queried: exit code 4 (see what `"),
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
    assert (greetings(task), files_with(task.path, "sk-123 ")) == (0, [])


def test_a_cancel_does_not_wait_for_the_answer(task: Task) -> None:
    Path("show").write_text("touch asked; exec sleep 60", encoding="utf-8")
    run("spawn", "--agent", "general", "--driver", "shows", "--name", "a", "do it")
    wait_until(Path("asked").exists)
    told = run("cancel", "--json", "a", timeout=GRACE_S / 2).json
    assert (told["status"], told["survivors"]) == ("cancelled", [])


def test_a_cancel_does_not_wait_for_another_try(task: Task) -> None:
    """The fourth question has met another start: the next one would be asked 4 s later at the earliest."""
    line = "echo . >>asked; echo is locked >&2; exit 1"
    Path("show").write_text(line, encoding="utf-8")
    run("spawn", "--agent", "general", "--driver", "shows", "--name", "a", "do it")
    wait_until(lambda: text_in("asked"), timeout_s=30, what="eight questions", accept=lambda text: len(text) == 8)
    told = run("cancel", "--json", "a", timeout=GRACE_S / 2).json
    assert (told["status"], told["survivors"]) == ("cancelled", [])
    assert len(text_in("asked")) == 8


def test_a_secret_is_new_at_each_start_and_in_no_file_of_a_task(task: Task, root: Path) -> None:
    for name in "ab":
        assert play("echo '{}'", name)["status"] == "completed"
    secrets = {secret for _, secret, _ in starts()}
    assert len(secrets) == 2
    for secret in secrets:
        assert len(secret) == 32
        assert files_with(root, secret) == []


def test_a_worker_below_does_not_inherit_it(task: Task) -> None:
    """Else it could speak to the program of the agent that has started it."""
    line = shlex.join([*PROGRAM, "spawn", "--name", "below", "--", "sh", "-c", 'echo "secret: $SECRET."'])
    Path("before").write_text(f"{line} >/dev/null\n", encoding="utf-8")
    assert play("echo '{}'")["status"] == "completed"
    ends("below")
    assert run("logs", "below").out == "secret: .\n"

"""At stake: the same work on exactly the same files is not done again, and no other work counts as the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agent_steps import agent_world, ends
from tests.repositories import commit, git, new_repository
from tests.steps import Task, new_task, statuses
from tests.support import run


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, and change into a repository beside it."""
    found = agent_world(tmp_path, monkeypatch)
    monkeypatch.chdir(new_repository(tmp_path / "repository"))
    return found


def again(*line: str) -> dict[str, Any]:
    """Spawn with `--reuse`, wait for the end, and return the answer of spawn."""
    told: dict[str, Any] = run("spawn", "--reuse", "--json", *(line or ("--", "cat", "a.txt"))).json
    run("wait", told["agentInstance"], check=False)
    return told


def test_the_same_work_over_the_same_files_answers_again(task: Task) -> None:
    first, second = again(), again()
    assert (first["reused"], second["reused"]) == (False, True)
    assert (second["agentInstance"], second["status"]) == (first["agentInstance"], "completed")
    assert len(statuses()) == 1


def _link(name: str, target: str) -> None:
    Path(name).unlink()
    Path(name).symlink_to(target)


def _commit_in(folder: Path, text: str) -> None:
    (folder / "b.txt").write_text(text, encoding="utf-8")
    commit(folder, text)


@pytest.mark.slow
def test_whatever_changed_in_the_files_it_is_other_work(task: Task, tmp_path: Path) -> None:
    inner = new_repository(tmp_path / "inner")
    git(Path.cwd(), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    git(Path.cwd(), "commit", "--quiet", "-am", "with a submodule")
    names = [again()["agentInstance"]]
    for change in (
        lambda: Path("a.txt").unlink(),
        lambda: Path("a.txt").write_text("changed\n", encoding="utf-8"),
        lambda: Path("new.txt").write_text("one\n", encoding="utf-8"),
        lambda: Path("new.txt").write_text("two\n", encoding="utf-8"),
        lambda: Path("new.txt").chmod(0o755),
        lambda: _link("new.txt", "a.txt"),
        lambda: _link("new.txt", "inner"),
        lambda: git(Path.cwd(), "commit", "--quiet", "-am", "changed"),
        lambda: _commit_in(Path("inner"), "one\n"),
        lambda: _commit_in(Path("inner"), "two\n"),
    ):
        change()
        told = again()
        assert not told["reused"]
        names.append(told["agentInstance"])
    assert len(set(names)) == len(names)
    Path("ignored.log").write_text("x", encoding="utf-8")
    assert again()["reused"]
    assert not again("--", "cat", "b.txt")["reused"]


@pytest.mark.slow
def test_an_agent_answers_again_and_one_that_failed_does_not(task: Task) -> None:
    words = ("--agent", "general", "say hello")
    assert [again(*words)["reused"], again(*words)["reused"]] == [False, True]
    assert ends("general-1")["result"]["finalMessage"] == "hello"
    assert not again("--agent", "general", "--model", "other", "say hello")["reused"]
    assert [again("--", "false")["reused"], again("--", "false")["reused"]] == [False, False]


def test_outside_of_a_repository_nobody_can_tell(root: Path) -> None:
    new_task()
    refused = run("spawn", "--reuse", "--", "true", check=False)
    assert refused.code == 1
    assert "cannot tell whether the files" in refused.err
    assert run("spawn", "--reuse", "--key", "k", "--", "true", check=False).code == 2
    assert statuses() == {}

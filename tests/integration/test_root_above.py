"""At stake: a root above a git repository is that of something else, and is used only where it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.advice import follow
from tests.repositories import commit, git, new_repository
from tests.snapshots import snapshot
from tests.support import run


@pytest.fixture
def above(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a root with a task, in a folder that will hold repositories; it is found by where one works."""
    monkeypatch.delenv("AGENTCTL_ROOT")
    run("new", "Of all", "--id", "all", cwd=tmp_path)
    return root


@pytest.fixture
def repository(above: Path, tmp_path: Path) -> Path:
    return new_repository(tmp_path / "its repo")


COMMANDS = (
    ["list"], ["tasks"], ["spawn", "--", "true"], ["use", "all"], ["wait-all"], ["interact", "list"], ["serve"],
    ["watch", "--plain"], ["answer"],
)  # fmt: skip


@pytest.mark.follows("operations/where/locating._outside: agentctl new")
def test_no_command_takes_it_and_each_says_what_to_type(above: Path, repository: Path) -> None:
    before = snapshot(above)
    for command in COMMANDS:
        told = run(*command, cwd=repository / "sub", check=False)
        assert told.code == 3, told
        assert f"{above} lies above the repository {repository}" in told.err, told
        assert f"--root {above}" in told.err, told
        assert 'agentctl new "TITLE"' in told.err, told
    assert snapshot(above) == before
    assert not (repository / "sub" / ".agentctl").exists()
    follow(run("list", cwd=repository, check=False), 'agentctl new "TITLE"', cwd=repository)
    assert run("list", cwd=repository).code == 0


def test_it_is_used_where_it_is_named(above: Path, repository: Path) -> None:
    assert "all" in run("tasks", "--root", above, cwd=repository).out
    run("spawn", "--name", "a", "--wait", "--", "agentctl", "list", cwd=repository, env={"AGENTCTL_ROOT": str(above)})
    assert run("logs", "a", "--root", above, cwd=repository).out.startswith("a\trunning")


def test_a_new_task_is_made_in_the_repository_and_says_so(above: Path, repository: Path) -> None:
    told = run("new", "Mine", "--id", "mine", cwd=repository)
    assert f"{above} lies above the repository {repository}" in told.err
    assert "this task has a root of its own" in told.err
    assert (repository / ".agentctl" / "tasks" / "mine").is_dir()
    assert run("new", "Mine too", "--id", "too", cwd=repository).err == ""
    assert [row["taskId"] for row in run("tasks", "--json", cwd=repository / "sub").json] == ["mine", "too"]


def test_what_needs_no_root_goes_on_and_names_it(above: Path, repository: Path) -> None:
    for command in (["agents"], ["templates"], ["doctor"]):
        told = run(*command, cwd=repository)
        assert f"{above} lies above the repository {repository}" in told.err, command


def test_below_a_folder_that_is_in_no_repository_it_is_found_as_ever(above: Path, tmp_path: Path) -> None:
    plain = tmp_path / "notes" / "2026"
    plain.mkdir(parents=True)
    (tmp_path / "notes" / ".git").mkdir()  # As the sandbox of an agent's program leaves it behind: git takes no notice.
    assert "all" in run("tasks", cwd=plain).out


def _worktree(of: Path, at: Path) -> Path:
    git(of, "worktree", "add", "--quiet", "-b", at.name, str(at))
    return at


@pytest.mark.slow
def test_worktrees_and_submodules_within_a_repository_belong_to_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTCTL_ROOT")
    main = new_repository(tmp_path / "main")
    inner = new_repository(tmp_path / "inner")
    git(main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "libs/inner")
    commit(main, "with a submodule")
    run("new", "T", "--id", "t1", cwd=main)
    run("spawn", "--worktree", "--name", "a", "--wait", "--", "true", cwd=main)
    places = [_worktree(main, main / ".trees" / "x"), main / "libs" / "inner", main / ".agentctl/worktrees/t1/a"]
    run("spawn", "--worktree", "--name", "b", "--cwd", inner, "--wait", "--", "true", cwd=main)
    for place in (*places, main / ".agentctl/worktrees/t1/b/sub", main / ".agentctl/tasks/t1"):
        assert "t1" in run("tasks", cwd=place).out, place

    beside = _worktree(main, tmp_path / "beside")
    run("new", "T", "--id", "over", cwd=tmp_path)
    for place in (beside, inner):
        assert run("tasks", cwd=place, check=False).code == 3, place


def test_worktrees_beside_their_bare_repository_belong_to_the_folder_of_both(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AGENTCTL_ROOT")
    source, project = new_repository(tmp_path / "source"), tmp_path / "project"
    git(tmp_path, "clone", "--quiet", "--bare", str(source), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    tree = _worktree(project, project / "feature")
    run("new", "T", "--id", "t1", cwd=project)
    assert "t1" in run("tasks", cwd=tree).out
    (project / ".agentctl").rename(tmp_path / ".agentctl")
    assert run("tasks", cwd=tree, check=False).code == 3

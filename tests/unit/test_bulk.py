"""At stake: what is old or large is told with the line that does something about it, and is not called wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.operations.doctor.discarded import examine_bulk
from tests.advice import follow
from tests.repositories import new_repository
from tests.steps import new_task, spawn
from tests.support import run


@pytest.mark.slow
@pytest.mark.follows(
    "operations/doctor/discarded.examine_bulk: agentctl archive",
    "operations/doctor/discarded.examine_bulk: agentctl archive --delete",
    "operations/doctor/discarded._Bulk._worktree_of: agentctl worktrees remove",
)
def test_what_is_large_is_told_with_the_line_that_frees_it(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(["true"], "--worktree", "--cwd", new_repository(tmp_path / "r"), "--wait", name="a")
    (task.agent("a") / "stdout.log").write_bytes(bytes(300_000))
    (root / "worktrees" / "t1" / "a" / "built").write_bytes(bytes(2_000_000))
    run("new", "A small one", "--id", "small")
    found = list(examine_bulk(Root(root), large=250_000))
    assert [(one.severity, one.what.partition(":")[0]) for one in found] == [
        ("note", "1 task over, of more than 0 MB, 0 MB in all"),
        ("note", "1 worktree of ended workers, of more than 0 MB, 2 MB in all"),
    ]
    (root / "worktrees" / "t1" / "a" / "built").unlink()
    follow(found[1].next, "agentctl worktrees remove a --task t1")
    follow(found[0].next, "agentctl archive t1")
    follow(found[0].next, "agentctl archive --delete t1")
    assert list(examine_bulk(Root(root), large=250_000)) == []

"""What of a tree a hold is about, whatever its tasks say of themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import TaskDir, TreeDir
from agentctl.adapters.taskyaml.cache import TaskConfig, store
from agentctl.adapters.treedir import tree_at
from agentctl.domain.tree.limits import Limits
from agentctl.errors import AgentctlError, Damaged
from agentctl.supervision.queue.queue_hold import QueueHolds, end_hold, hold_queue


@pytest.fixture
def tree(tmp_path: Path) -> TreeDir:
    """Make the tasks `top`, `middle` and `leaf`, one below the other, and `beside` below `top`."""
    for name, above in (("top", None), ("middle", "top"), ("leaf", "middle"), ("beside", "top")):
        folder = tmp_path / name
        (folder / "queue").mkdir(parents=True)
        root = None if above is None else "top"
        store(TaskDir(folder), b"", TaskConfig(Limits(), parent_task_id=above, root_task_id=root))
    return tree_at(tmp_path / "top")


def held(top: TreeDir) -> dict[str, str | None]:
    """Return each task and the one by whose hold its workers stay in the queue."""
    holds = QueueHolds(top)
    found = {name: holds.of_task(name) for name in ("top", "middle", "leaf", "beside")}
    return {name: None if hold is None else hold.task_id for name, hold in found.items()}


def test_the_nearest_hold_above_counts(tree: TreeDir) -> None:
    assert set(held(tree).values()) == {None}
    assert hold_queue(tree, tree.sibling("middle"), "user")
    assert held(tree) == {"top": None, "middle": "middle", "leaf": "middle", "beside": None}
    assert not hold_queue(tree, tree.sibling("middle"), "another")
    assert hold_queue(tree, tree, "user")
    assert held(tree) == {"top": "top", "middle": "middle", "leaf": "middle", "beside": "top"}
    assert end_hold(tree, tree)
    assert not end_hold(tree, tree)
    assert held(tree) == {"top": None, "middle": "middle", "leaf": "middle", "beside": None}


def test_a_cap_of_0_is_a_hold_of_the_tree(tree: TreeDir) -> None:
    store(tree, b"", TaskConfig(Limits(max_concurrent_agents=0)))
    assert held(tree) == dict.fromkeys(("top", "middle", "leaf", "beside"), "top")
    hold = QueueHolds(tree).of_task("leaf")
    assert hold is not None
    assert hold.by is None


@pytest.mark.parametrize("lost", ["its configuration", "who is above it"])
def test_a_task_rests_with_the_others_where_it_is_unknown_what_is_above_it(tree: TreeDir, lost: str) -> None:
    hold_queue(tree, tree, "user")
    middle = tree.sibling("middle")
    if lost == "its configuration":
        Path(middle.config_cache).write_text("{")
    else:
        store(middle, b"", TaskConfig(Limits(), parent_task_id="leaf", root_task_id="top"))  # A forged cycle.
    assert held(tree)["leaf"] == "top"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"held": []}', '{"held": {"../x": {}}}', '{"held": {"a/b/c": {}}}', '{"held": {"a": 1}}', "{"],
)
def test_what_cannot_be_understood_is_no_answer(tree: TreeDir, text: str) -> None:
    Path(tree.held).write_text(text)
    with pytest.raises(Damaged):
        QueueHolds(tree)
    with pytest.raises(AgentctlError):
        hold_queue(tree, tree, "user")
    assert Path(tree.held).read_text() == text


def test_only_the_workers_below_a_paused_one_are_held(tree: TreeDir) -> None:
    spec = {"boss": None, "child": "boss", "grandchild": "child", "other": None}
    for name, parent in spec.items():
        folder = Path(tree.agents) / name
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps({"parent": parent}))
    far = Path(tree.sibling("leaf").agents) / "far"
    far.mkdir(parents=True)
    (far / "spec.json").write_text(json.dumps({"parent": "child", "parentTask": "top"}))
    hold_queue(tree, tree.worker("boss"), "user")

    def below() -> set[str]:
        holds = QueueHolds(tree)
        workers = [*map(tree.worker, spec), tree.sibling("leaf").worker("far")]
        return {worker.instance for worker in workers if holds.of(worker) is not None}

    assert below() == {"child", "grandchild", "far"}
    Path(tree.worker("boss").exit).write_text(json.dumps({"status": "completed", "attempt": 1}))
    assert below() == set(), "a worker that has ended is not paused any more"

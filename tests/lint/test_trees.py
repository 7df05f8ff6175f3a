"""At stake: a sub-task that is taken for its root task has slots and a queue of its own, beside those of its tree."""

from __future__ import annotations

import ast

from tests.lint.test_architecture import MODULES, named

#: Who takes the folder of a task for that of a root task, and why that is so. This list may only shrink.
BY_FOLDER = {
    "shim/loop.py": "a shim is started with it",
    "supervision/dispatch/waker.py": "a waker is started with it",
    "supervision/notify/sender.py": "a sender is started with it",
    "supervision/life/strangers.py": "it is on the command line of these, and the tree's own files prove it",
    "operations/start/new_task.py": "each task is made with the folders of a tree",
    "operations/where/odd_files.py": "and so these are there",
    "operations/doctor/examining.py": "whoever can write to a sub-task can put such files there",
}


def callers_of(name: str) -> set[str]:
    return {
        named(path) for path in MODULES for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
    }  # fmt: skip


def test_a_tree_is_had_from_one_module() -> None:
    assert callers_of("TreeDir") == {"adapters/treedir.py"}


def test_only_these_take_a_folder_for_that_of_a_root_task() -> None:
    assert callers_of("tree_at") == BY_FOLDER.keys()

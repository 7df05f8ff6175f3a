"""Folders above a new one are made only where a root, or something that lies in no root, is made.

Whoever writes below a task or worker and makes what is missing above it makes again what somebody has removed.
"""

from __future__ import annotations

import re

from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentctl"
#: What makes a root, a probe, or a person's own files, by module.
MAKERS = {
    "adapters/files.py", "adapters/known.py", "adapters/origin.py", "adapters/paths.py", "adapters/privaterows.py",
    "adapters/versions.py", "interfaces/bug_report.py", "interfaces/screen/start/line_history.py",
    "operations/doctor/nodes.py", "operations/doctor/probing.py", "operations/fleet/seen.py",
    "operations/install/boot.py", "operations/install/installing.py", "operations/notify/applied_targets.py",
    "operations/show/joining.py", "operations/start/new_task.py", "operations/start/walls.py",
    "operations/where/locating.py", "supervision/account/holds.py", "supervision/notify/armed.py",
    "supervision/notify/gaze.py", "supervision/worker/environment.py", "supervision/worktree/submodules.py",
    "worker_programs/agent_host/program/own_home.py", "worker_programs/on_node/exchange/launch_record.py",
    "worker_programs/on_node/post.py",
}  # fmt: skip
MAKES_ALL = re.compile(r"\b(make_folders|makedirs)\(|\bparents=True\b")


def test_only_those_who_make_a_root_or_own_files_make_the_folders_above() -> None:
    found = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if MAKES_ALL.search(file.read_text(encoding="utf-8"))
    }
    assert found == MAKERS

"""At stake: of what a worker writes into its record, only files of its own are given out, whatever is put there."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.web.support import Server, ended, new_task, spawned

pytestmark = pytest.mark.server


def test_only_files_in_a_folder_of_the_worker_are_given_out(server: Server, tmp_path: Path) -> None:
    task, folder = new_task(server), tmp_path / "work-of-it"
    folder.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("not for you")
    (folder / "good.md").write_text("good", encoding="ascii")
    (folder / "link.md").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo")
    spawned(server, task, ["agentctl", "report", "result", "--file", "good.md"], name="w", cwd=str(folder))
    ended(server, task, "w")
    names = ["link.md", "up/secret", "../secret", "fifo", "..", ".", "good.md"]
    paths = ["/etc/passwd", "/proc/self/environ", str(secret), *(f"{folder}/{name}" for name in names)]
    record = server.root / "tasks" / task / "agents/w/result.json"
    known = json.loads(record.read_text())
    record.write_text(json.dumps(known | {"artifacts": [{"path": path} for path in paths]}))
    answers = {path: server.get(f"/tasks/{task}/workers/w/file?path={quote(path)}") for path in paths}
    assert answers.pop(f"{folder}/good.md").body == b"good"
    assert {path: answer.problem["status"] for path, answer in answers.items()} == dict.fromkeys(answers, 409)
    shown = server.get(f"/tasks/{task}/workers/w/result").done()["files"]
    assert {one["now"] for one in shown} == {"not compared"}, "nothing elsewhere is read, nor a record without a hash"
    digest = hashlib.sha256(b"not for you").hexdigest()
    elsewhere = [{"path": path, "size": 11, "sha256": digest} for path in paths]
    record.write_text(json.dumps(known | {"artifacts": elsewhere}))
    shown = server.get(f"/tasks/{task}/workers/w/result").done()["files"]
    assert {one["path"]: one["now"] for one in shown}[f"{folder}/good.md"] == "changed"
    assert "same" not in {one["now"] for one in shown}, "a hash is no way to ask what is in a file elsewhere"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert server.get(f"/tasks/{task}/workers/w/file?path={quote(f'{folder}/good.md')}").problem["status"] == 409


def test_where_a_worker_ran_in_all_of_a_persons_files_none_of_these_is_its_own(server: Server, tmp_path: Path) -> None:
    task = new_task(server)
    private = Path.home() / "private"
    private.write_text("mine")
    for name, cwd in (("top", "/"), ("home", str(Path.home()))):
        spawned(server, task, ["agentctl", "report", "result", "--file", str(private)], name=name, cwd=cwd)
        ended(server, task, name)
        answer = server.get(f"/tasks/{task}/workers/{name}/file?path={quote(str(private))}")
        assert answer.problem["status"] == 409

"""At stake: what waits in memory for later programs stays private, stays found, and is nobody else's to take away."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.taskdir import TaskDir
from agentctl.errors import Refused
from agentctl.supervision.worker import deferred, environment
from tests.steps import new_task
from tests.support import run, start, wait_until


def serving() -> tuple[subprocess.Popen[str], Path, int]:
    """Start a server over HTTP; return it, its token's file and its port."""
    told = ""
    for _ in range(5):  # Somebody else may take the port first.
        port = free_port()
        server = start("mcp", "--http", str(port))
        assert server.stderr is not None
        told = server.stderr.readline()
        if "Address already in use" not in told:
            return server, Path(told.rsplit(" ", 1)[1].strip()), port
    raise AssertionError(told)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
def test_a_second_server_on_a_port_is_refused_and_takes_no_token_away(root: Path) -> None:
    new_task()
    first, token, port = serving()
    before = token.read_bytes()
    second = run("mcp", "--http", str(port), check=False)
    assert (second.code, second.out) == (1, "")
    assert f"cannot listen on port {port} of 127.0.0.1: Address already in use" in second.err
    assert "hint: " in second.err
    assert token.read_bytes() == before
    wait_until(lambda: answers(token), what="the server to serve")
    first.terminate()
    wait_until(lambda: first.poll() is not None, what="the server to leave")
    assert not token.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_server_removes_no_token_but_its_own(root: Path, number: int) -> None:
    new_task()
    server, token, _ = serving()
    token.with_name("other").write_bytes(b"of another server\n")
    os.rename(token.with_name("other"), token)
    wait_until(lambda: answers(token), what="the server to serve")
    server.send_signal(number)
    wait_until(lambda: server.poll() is not None, what="the server to leave")
    assert token.read_bytes() == b"of another server\n"


def answers(token: Path) -> bool:
    port = int(token.stem.removeprefix("mcp-"))
    with socket.create_connection(("127.0.0.1", port)) as talk:
        talk.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return talk.recv(8) == b"HTTP/1.1"


# -- where environments wait -------------------------------------------------------------------------------------------


@pytest.fixture
def memory(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in the place of /dev/shm, in a world without a runtime folder."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(environment, "_MEMORY", str(folder))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    return folder


def test_what_a_login_gives_is_no_place_for_them(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox that shows the disk shows that, too; what a person has chosen is theirs to choose."""
    given = f"/run/user/{os.getuid()}"
    assert [environment._is_chosen(folder) for folder in (given, f"{given}/", str(memory))] == [False, False, True]
    monkeypatch.setattr(environment, "_MEMORY", str(memory / "none"))
    assert environment._is_chosen(given), "there is no other"


def open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def a_link(place: Path) -> None:
    place.with_name("elsewhere").mkdir(mode=0o700)
    place.symlink_to("elsewhere")


def somebody_elses(place: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can make a folder of somebody else")
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)


@pytest.mark.parametrize("occupy", [open_to_all, a_link, somebody_elses])
def test_a_name_that_somebody_else_has_taken_keeps_nobody_from_working(memory: Path, occupy: Any) -> None:
    usual = memory / f"agentctl-{os.getuid()}"
    occupy(usual)
    found = Path(environment.store_folder())
    assert (found.parent, found.stat().st_mode & 0o777) == (memory, 0o700)
    assert found != usual
    assert environment.store_folder() == str(found), "a later command finds the same one"
    shutil.rmtree(found)
    assert environment.store_folder() == str(found), "after a reboot, too"
    found.chmod(0o755)
    again = environment.store_folder()
    assert again not in (str(found), str(usual))
    assert environment.store_folder() == again


@pytest.mark.parametrize("kept", ["../../home/secrets", "agentctl-0-/x", "", "é"])
def test_what_is_kept_is_a_name_and_nothing_else(memory: Path, kept: str) -> None:
    open_to_all(memory / f"agentctl-{os.getuid()}")
    note = Path(os.environ["HOME"], ".local", "state", "agentctl", "store")
    note.parent.mkdir(parents=True)
    note.write_text(kept)
    assert Path(environment.store_folder()).parent == memory


def test_where_nothing_can_be_kept_the_way_out_can_be_followed(memory: Path) -> None:
    open_to_all(memory / f"agentctl-{os.getuid()}")
    Path(os.environ["HOME"], ".local", "state", "agentctl", "store").mkdir(parents=True)
    with pytest.raises(Refused, match="is not private to you") as refused:
        environment.store_folder()
    assert "export XDG_RUNTIME_DIR=" in str(refused.value.hint)


def test_many_at_once_agree_on_one(memory: Path) -> None:
    open_to_all(memory / f"agentctl-{os.getuid()}")
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: str(environment.store_folder()), range(32)))) == 1


def test_what_waits_for_a_worker_is_not_for_another_task_of_that_name(root: Path) -> None:
    path = str(new_task().path)
    before = TaskDir(path).worker("a")
    deferred.defer_request(before, deferred.CANCEL, {"by": "user"})
    deferred.say(before, {"end": {"status": "completed"}})
    assert deferred.request(before, deferred.CANCEL) == {"by": "user"}
    shutil.rmtree(path)
    run("new", "Another", "--id", "t1")
    after = TaskDir(path).worker("a")
    assert deferred.request(after, deferred.CANCEL) is None
    assert deferred.standing(after) == {}
    assert not os.stat(deferred.place()).st_mode & 0o077

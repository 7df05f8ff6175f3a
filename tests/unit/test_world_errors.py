"""At stake: an error of the system is told as what it is, and what cannot be read is never taken for nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters import origin, processes
from agentctl.adapters.files import (
    create_whole,
    file_text,
    read_json,
    read_known,
    read_to_show,
    storage_errors,
    write_whole,
)
from agentctl.adapters.opening import OddFile, open_plain
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.adapters.taskyaml.cache import cached
from agentctl.adapters.treedir import tree_at
from agentctl.domain.names import WorkerId
from agentctl.errors import StorageError
from agentctl.interfaces.cli.app import main
from agentctl.operations.fleet.seen import SeenEnds
from agentctl.operations.notify.applied_targets import _roots
from agentctl.operations.talk.messaging import mark_read
from agentctl.operations.wait.cursor import Cursor
from agentctl.operations.where.chosen_task import chosen_task
from agentctl.supervision.account.accounts import Account
from agentctl.supervision.account.holds import back_off, hold_of
from agentctl.supervision.queue.places import names_shim, read_occupant
from agentctl.supervision.worker import cancel_request, environment, placed, spec
from agentctl.supervision.worker.endings import decision_of
from agentctl.supervision.worker.kinship import parent_of
from agentctl.tools.hints import error_result
from agentctl.world_errors import next_step

NAMES = [
    "ENOSPC",
    "EDQUOT",
    "EROFS",
    "EACCES",
    "EPERM",
    "EIO",
    "EMFILE",
    "ENFILE",
    "ENOMEM",
    "EFBIG",
    "ESTALE",
    "EINTR",
    "ENODEV",
    "ENXIO",
    "ETXTBSY",
    "EOVERFLOW",
    "EBUSY",
    "EUCLEAN",
    "ENOLCK",
    "ETIMEDOUT",
    "ENOTCONN",
    "EREMOTEIO",
    "EBADMSG",
    "ENOKEY",
    "EHOSTDOWN",
    "ENAMETOOLONG",
    "ELOOP",
    "EAGAIN",
    "EMLINK",
    "EXDEV",
]
WORLD = [getattr(errno, name) for name in NAMES if hasattr(errno, name)]
#: Of open(2) and read(2), for a plain file; EACCES may be a sandbox's or another user's closed folder.
OF_READS = [
    errno.EIO,
    errno.ESTALE,
    errno.EMFILE,
    errno.ENOMEM,
    errno.ENODEV,
    errno.ENXIO,
    errno.ETIMEDOUT,
    errno.EBUSY,
]


def os_error(error: int, *where: str) -> OSError:
    return OSError(error, os.strerror(error), *where)


@pytest.mark.parametrize("error", WORLD, ids=errno.errorcode.get)
def test_each_is_told_with_what_where_and_what_next(error: int, capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise os_error(error, "/some/place")

    assert main(["list"], first=fail) == 1
    told = capfd.readouterr().err
    assert told.splitlines()[0] == f"error: {os.strerror(error)}: /some/place"
    assert told.splitlines()[1].startswith("hint: ")
    assert "bug" not in told
    for_model = error_result(os_error(error, "/some/place"))
    assert for_model["error"] == f"{os.strerror(error)}: /some/place"
    if error != errno.EAGAIN:  # Of a file that is never waited for, it says "not now".
        with (
            pytest.raises(StorageError, match=r"cannot read /some/place") as named,
            storage_errors("/some/place", "read"),
        ):
            raise os_error(error)
        assert named.value.hint


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EBADF, errno.ESRCH, errno.EFAULT], ids=errno.errorcode.get)
def test_what_only_a_mistake_of_ours_brings_about_is_none(error: int) -> None:
    assert next_step(os_error(error)) is None
    with pytest.raises(OSError, match="Errno"), storage_errors("/some/place", "read"):
        raise os_error(error)


# -- what decides ------------------------------------------------------------------------------------------------------


@pytest.fixture
def task(root: Path) -> TaskDir:
    found = Root(str(root)).task("t1")
    for folder in tree_at(found.path).folders():
        os.makedirs(folder, exist_ok=True)
    os.makedirs(found.worker("w").path)
    return found


def marks(task: TaskDir) -> FilePath:
    return FilePath(task.path / "own")


def account_of(task: TaskDir) -> Account:
    return Account("a", task.path)


#: What is looked at -> the look, and what it says where there is nothing.
LOOKS: dict[str, tuple[Callable[[TaskDir], object], object]] = {
    "current": (lambda task: chosen_task(task.root), None),
    "a cursor": (lambda task: Cursor(tree_at(task.path), "t1", "c").undelivered([]), []),
    "origin": (TaskDir.nonce, ""),
    "a mark": (lambda task: origin._is_ones_own(marks(task), marks(task) / "m"), False),
    "the targets of a task": (lambda task: read_known(tree_at(task.path).notify), {}),
    "the targets of a root": (lambda _: _roots(), {}),
    "an account": (lambda task: hold_of(account_of(task)), None),
    "a place": (lambda task: read_occupant(tree_at(task.path).slots / "1"), None),
    "an order": (lambda task: parent_of(task.worker("w")), None),
    "the limits of a tree": (lambda task: spec.held_limits(task.worker("w")), {}),
    "a cancel": (lambda task: task.worker("w").cancel.exists(), False),
    "what a cancel asks": (lambda task: cancel_request.asked_grace(task.worker("w")), None),
    "a decision": (lambda task: decision_of(task.worker("w")), None),
    "a launch": (lambda task: placed.launch_of(task.worker("w")), None),
    "an environment": (lambda task: environment.get(task.path, "0123456789abcdef"), None),
    "whether an environment waits": (lambda task: environment.waits(task.path, "0123456789abcdef"), False),
    "a configuration": (cached, None),
    "a folder": (lambda task: task.path.is_dir(), True),
}


def failing(monkeypatch: pytest.MonkeyPatch, error: int) -> list[str]:
    """Make every look at a file fail; return the paths that were met."""
    met: list[str] = []

    def fail(path: Any, *_: object, **__: object) -> Any:
        met.append(os.fspath(path))
        raise os_error(error, os.fspath(path))

    for call in ("open", "stat", "lstat", "listdir"):
        monkeypatch.setattr(os, call, fail)
    return met


@pytest.mark.parametrize("error", OF_READS, ids=errno.errorcode.get)
@pytest.mark.parametrize("what", LOOKS)
def test_what_cannot_be_read_is_told_and_what_is_missing_is_not(
    task: TaskDir, monkeypatch: pytest.MonkeyPatch, what: str, error: int
) -> None:
    look, nothing = LOOKS[what]
    assert look(task) == nothing
    with monkeypatch.context() as patched:
        met = failing(patched, error)
        with pytest.raises(StorageError) as told:
            look(task)
    assert os.strerror(error) in told.value.message
    assert [path for path in met if path in told.value.message], told.value.message
    assert told.value.hint
    assert look(task) == nothing


@pytest.mark.parametrize("error", OF_READS, ids=errno.errorcode.get)
def test_places_of_a_tree_that_cannot_be_read_are_not_free(
    task: TaskDir, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    me = processes.identify(os.getpid())
    assert me is not None
    slots = tree_at(task.path).slots
    assert not names_shim(slots, me)
    with monkeypatch.context() as patched:
        failing(patched, error)
        with pytest.raises(StorageError, match="slots"):
            names_shim(slots, me)


#: What changes a file in one of these folders.
WRITTEN_BACK: dict[str, Callable[[TaskDir], object]] = {
    "an account": lambda task: back_off(account_of(task), 60),
    "what was looked at": lambda task: SeenEnds(task.root).note({WorkerId("t1", "w"): "at"}),
    "how many messages were read": lambda task: mark_read(task.worker("w")),
}


@pytest.mark.parametrize("what", WRITTEN_BACK)
def test_what_could_not_be_read_is_not_written_back(task: TaskDir, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    change = WRITTEN_BACK[what]
    os.makedirs(task.worker("w").inbox)
    change(task)
    (file,) = (path for path in Path(task.root.path.parent).rglob("*") if path.is_file() and path.stat().st_size)
    before, opened = file.read_bytes(), os.open

    def fail(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if os.fspath(path) == str(file):
            raise os_error(errno.EIO, str(path))
        return opened(path, flags, *more, **named)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", fail)
        with pytest.raises(StorageError, match="Input/output error"):
            change(task)
    assert file.read_bytes() == before


def test_a_view_shows_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        failing(patched, errno.EIO)
        assert read_to_show(tmp_path / "progress.json") == {}


def test_what_is_there_and_broken_is_as_if_there_were_nothing(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("[]")
    (tmp_path / "bytes").write_bytes(b"\xff")
    (tmp_path / "link").symlink_to("list")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "fifo")
    assert [read_known(tmp_path / name) for name in ("list", "bytes", "link", "loop", "fifo", "none", "list/none")] == [
        {}
    ] * 7
    assert [file_text(tmp_path / name) for name in ("bytes", "link", "fifo", "none")] == [""] * 4
    assert [FilePath(tmp_path / name).exists() for name in ("link", "loop", "none", "list/none", "x" * 300)] == [
        True, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("error", [errno.ENODEV, errno.ENXIO, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def test_a_plain_file_on_a_device_that_is_gone_is_no_odd_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    file = tmp_path / "file"
    file.touch()

    def gone(path: Any, *_: object) -> int:
        raise os_error(error, str(path))

    monkeypatch.setattr(os, "open", gone)
    with pytest.raises(OSError, match=os.strerror(error)) as told:
        open_plain(file)
    assert not isinstance(told.value, OddFile)


def test_an_error_of_read_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("{}")

    def fail(*_: object) -> bytes:
        raise os_error(errno.EIO)

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(OSError, match="Input/output error") as told:
        read_json(tmp_path / "file")
    assert told.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize("call", ["rename", "link"])
@pytest.mark.parametrize("was_done", [False, True])
def test_a_call_that_was_interrupted_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, *, was_done: bool
) -> None:
    """FUSE passes EINTR on, also of a call that it has carried out; Python repeats neither rename(2) nor link(2)."""
    real, left = getattr(os, call), 2

    def interrupted(*paths: Any) -> None:
        nonlocal left
        if left and (left := left - 1):
            if was_done:
                real(*paths)
            raise os_error(errno.EINTR)
        real(*paths)

    monkeypatch.setattr(os, call, interrupted)
    if call == "rename":
        write_whole(tmp_path / "file", b"text")
    else:
        assert create_whole(tmp_path / "file", b"text") is True
        assert create_whole(tmp_path / "file", b"other") is False
    assert (tmp_path / "file").read_bytes() == b"text"
    assert os.listdir(tmp_path) == ["file"]


@pytest.fixture
def no_descriptors() -> Iterator[None]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_without_a_descriptor_nothing_is_known_of_a_process(no_descriptors: None) -> None:
    """Who cannot look takes nobody for a person, no worker for lost, and no machine for another."""
    processes.boot_id.cache_clear()
    processes.machine_id.cache_clear()
    looks: list[Callable[[], object]] = [
        processes.boot_id, processes.machine_id, lambda: processes.environment_of(os.getpid()),
        lambda: processes.command_line_of(os.getpid()),
    ]  # fmt: skip
    for look in looks:
        with pytest.raises(StorageError, match="Too many open files"):
            look()

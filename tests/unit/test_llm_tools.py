"""At stake: whatever a model calls, the program answers the call, and goes on."""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentctl.worker_programs.plain_model.break_off import BreakOff, Interrupted
from agentctl.worker_programs.plain_model.host_channel import HostChannel, Reply, SharedParts
from agentctl.worker_programs.plain_model.model.answer import ToolCall
from agentctl.worker_programs.plain_model.model.provider_key import Mask
from agentctl.worker_programs.plain_model.model_turns import is_id_of_call
from agentctl.worker_programs.plain_model.toolbox import tool_processes
from agentctl.worker_programs.plain_model.toolbox.reachable_paths import Places
from agentctl.worker_programs.plain_model.toolbox.tool_calls import Result, ToolCalls
from agentctl.worker_programs.plain_model.toolbox.tool_processes import Output, run_shell
from agentctl.worker_programs.plain_model.toolbox.toolset import SPECS, chosen_tools
from tests.moments import at_openings
from tests.processes import children_of, words_of
from tests.support import wait_until


class _Host(HostChannel):
    """A host that allows what is done in a folder, but no commands."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def say(self, kind: str, **fields: Any) -> None:
        if kind == "ask":
            arguments = fields.get("arguments", {})
            where = os.path.realpath(self.folder / arguments["path"]) if "path" in arguments else "/"
            self.answered(fields["key"], Reply(where.startswith(f"{self.folder}/"), "no"))


def tools_in(folder: Path, rules: Sequence[Mapping[str, str]] = ()) -> ToolCalls:
    """Return the tools of an agent that works in a folder, by these rules."""
    shared = SharedParts(_Host(folder), BreakOff(), Mask(None))
    places = Places(str(folder), {}, str(folder / "outputs"))
    return ToolCalls(shared, places, chosen_tools(None, read_only=False), None, (rules, []), str(folder / "outputs"))


def answers(tools: ToolCalls, *calls: tuple[str, Any]) -> list[Result]:
    """Return what calls come to."""
    found: list[Result] = []
    made = [ToolCall(str(number), name, arguments) for number, (name, arguments) in enumerate(calls)]
    tools.run_all(made, lambda _, result: found.append(result))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("work")
    (made / "sub").mkdir()
    return made


NAMES = st.sampled_from([spec.name for spec in SPECS if spec.name not in {"find", "search"}])
TEXTS = st.text(max_size=6) | st.sampled_from(
    ["a.txt", "sub", "sub/b", "../a.txt", "a", "~", "~nobody/x", "\ud800", "\udcff", "\0", "x" * 5000, "/", ".", ""]
)
NUMBERS = st.integers() | st.sampled_from([0, -1, 10**400, 1e300, float("inf"), float("nan")])
VALUES = TEXTS | NUMBERS | st.none() | st.booleans() | st.lists(TEXTS, max_size=2)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "path": TEXTS, "old_string": TEXTS, "new_string": TEXTS, "content": TEXTS, "command": TEXTS, "question": TEXTS,
        "offset": NUMBERS, "limit": NUMBERS, "replace_all": st.booleans(), "directory": TEXTS, "options": VALUES,
        "timeout_seconds": VALUES, "description": VALUES,
    },
)  # fmt: skip


@given(st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=4))
@settings(max_examples=400, deadline=None)
@example([("edit_file", {"path": "a.txt", "old_string": "a", "new_string": "\ud800"})])
@example([("read_file", {"path": "a.txt", "offset": 2, "limit": -5})])
def test_any_call_has_an_answer(folder: Path, calls: list[tuple[str, dict[str, Any]]]) -> None:
    (folder / "a.txt").write_text("a\nb\n")
    found = answers(tools_in(folder), *calls)
    assert len(found) == len(calls)
    assert all(one.status in {"completed", "failed", "denied"} for one in found)
    assert not any(folder.rglob("*.tmp"))


@pytest.mark.parametrize("path", ["~/project/secrets/k", "~/project/./secrets/../secrets/k", "secrets/k"])
@pytest.mark.parametrize("pattern", ["secrets/*", "{folder}/secrets/*", "~/project/secrets/*"])
def test_no_spelling_of_a_path_passes_a_rule_that_denies_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, pattern: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "project"
    (folder / "secrets").mkdir(parents=True)
    (folder / "secrets" / "k").write_text("hunter2")
    (folder / "open").write_text("free")
    rules = [{"tool": "read_file", "pattern": pattern.format(folder=folder), "answer": "deny"}]
    calls = [
        ("read_file", {"path": path}),
        ("read_file", {"path": "~/project/open"}),
        ("search", {"pattern": "hunter"}),
    ]
    secret, free, found = answers(tools_in(folder, rules), *calls)
    assert (secret.status, "hunter2" in secret.text) == ("denied", False)
    assert (free.status, "free" in free.text) == ("completed", True)
    assert "hunter2" not in found.text


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 3000 + ")" * 3000, "[z-a]", "("])
def test_a_pattern_that_is_none_is_told_as_such(folder: Path, pattern: str) -> None:
    (told,) = answers(tools_in(folder), ("search", {"pattern": pattern}))
    assert "the pattern is not a regular expression" in told.text


def test_a_search_that_was_broken_off_does_not_say_that_there_is_nothing(folder: Path) -> None:
    (folder / "long.txt").write_text("a" * 60 + "!\n")
    with ThreadPoolExecutor() as threads:
        told = threads.submit(answers, tools_in(folder), ("search", {"pattern": "(a+)+$"}))
        (process,) = wait_until(
            lambda: [one for one in children_of(psutil.Process()) if any("/search_process" in w for w in words_of(one))]
        )
        process.kill()
        (result,) = told.result(20)
    # What was found before that is told, too: which file comes first is the system's to say.
    *_, last = result.text.split("\n")
    assert last == "[the search was broken off (signal 9): there may be more than this]"
    (folder / "long.txt").unlink()


@pytest.mark.parametrize("every", [True, False])
def test_an_edit_does_not_make_a_file_larger_than_one_that_is_read(folder: Path, *, every: bool) -> None:
    """Nobody is asked before it is known what a file would become."""
    (folder / "a.txt").write_text("a" * 2000)
    edit = {"path": "a.txt", "old_string": "a" * (1 if every else 2000), "new_string": "x" * (1 << 20) * 33}
    (told,) = answers(tools_in(folder), ("edit_file", {**edit, "replace_all": every}))
    assert "would become larger" in told.text
    assert (folder / "a.txt").stat().st_size == 2000


def save_in_place(file: Path) -> None:
    file.write_text("one, and theirs")


def save_by_name(file: Path) -> None:
    file.with_name("draft").write_text("one, and theirs")
    file.with_name("draft").rename(file)


@pytest.mark.parametrize("save", [save_in_place, save_by_name])
def test_what_a_person_saves_during_an_edit_stays(folder: Path, save: Callable[[Path], None]) -> None:
    file = folder / "theirs.txt"
    file.write_text("one")
    edit = {"path": file.name, "old_string": "one", "new_string": "two"}
    with at_openings(f".{file.name}.tmp", [partial(save, file)]):
        (told,) = answers(tools_in(folder), ("edit_file", edit))
    assert (told.status, file.read_text()) == ("failed", "one, and theirs")
    assert "was changed meanwhile, or is open for writing: read it again" in told.text
    (told,) = answers(tools_in(folder), ("edit_file", edit))
    assert (told.status, file.read_text()) == ("completed", "two, and theirs")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who has a file open for writing")
def test_what_a_program_has_open_for_writing_is_left_to_it(folder: Path) -> None:
    file = folder / "theirs.txt"
    file.write_text("one")
    edit = {"path": file.name, "old_string": "one", "new_string": "two"}
    with file.open("a") as theirs:
        (told,) = answers(tools_in(folder), ("edit_file", edit))
        assert "is open for writing: read it again" in told.text
        theirs.write(", and theirs")
    (told,) = answers(tools_in(folder), ("edit_file", edit))
    assert (told.status, file.read_text()) == ("completed", "two, and theirs")
    assert [one.name for one in folder.iterdir() if "theirs" in one.name] == [file.name]


def test_an_edit_keeps_the_mode_of_a_file(folder: Path) -> None:
    file = folder / "run.sh"
    file.write_text("one")
    file.chmod(0o750)
    answers(tools_in(folder), ("edit_file", {"path": file.name, "old_string": "one", "new_string": "two"}))
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("two", 0o750)


def test_the_lines_of_a_file_are_not_all_in_memory_at_once(folder: Path) -> None:
    (folder / "many.txt").write_bytes(b"ab\n" * 10_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (told,) = answers(tools_in(folder), ("read_file", {"path": "many.txt", "offset": 9_999_999}))
    assert told.text == "9999999\tab\n10000000\tab"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_only_so_many_searches_run_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentctl.worker_programs.plain_model.toolbox import tool_calls

    running, most, lock = 0, 0, threading.Lock()
    full = threading.Barrier(8)

    def look(*_: object) -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        full.wait(20)
        with lock:
            running -= 1
        return "found"

    monkeypatch.setattr(tool_calls, "look", look)
    found = answers(tools_in(folder), *[("search", {"pattern": "a"})] * 80)
    assert [one.text for one in found] == ["found"] * 80
    assert most == 8


@pytest.mark.parametrize(
    "row", ["user-1", "m1", "m2-thought", "note-3", "r1-m1-0", "r12-user-1", "report-1", "", "\x1b[2J"]
)
def test_no_call_has_the_id_of_another_row(row: str) -> None:
    """Otherwise a server could have a call stand in the place of what the person has said."""
    assert not is_id_of_call(row)
    assert is_id_of_call(f"call_{row}") or not row.isprintable()


def run_and_break(folder: Path, command: str, size: int) -> None:
    """Break a command off once its output has a size."""
    breaker = BreakOff()

    class _Breaking(Output):
        def take(self, chunk: bytes) -> None:
            super().take(chunk)
            if self._size >= size:
                breaker.trip()

    output = _Breaking(str(folder / f"{len(os.listdir(folder))}.txt"), Mask(None))
    with pytest.raises(Interrupted):
        run_shell(command, str(folder), 60, breaker, output)


def test_a_command_that_is_broken_off_leaves_no_file_open(tmp_path: Path) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    run_and_break(tmp_path, "seq 20000; exec tail -f /dev/null", 100_000)
    before = opened()
    run_and_break(tmp_path, "seq 20000; exec tail -f /dev/null", 100_000)
    assert opened() == before


def test_no_group_is_signalled_once_its_leader_is_reaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may be that of another group by then."""
    unreaped: list[bool] = []
    kill = os.killpg

    def look(group: int, number: int) -> None:
        unreaped.append(Path(f"/proc/{group}").exists())
        kill(group, number)

    monkeypatch.setattr(os, "killpg", look)
    run_and_break(tmp_path, "echo begun; exec tail -f /dev/null", 1)
    ran = run_shell("exec tail -f /dev/null", str(tmp_path), 0.1, BreakOff(), Output(str(tmp_path / "o"), Mask(None)))
    assert (ran.code, ran.timed_out) == (-15, True)
    assert len(unreaped) >= 4
    assert all(unreaped)


@pytest.mark.parametrize(("size", "kept"), [(50_000, "the whole"), (50_001, "more of the beginning")])
def test_only_so_much_of_an_output_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, kept: str
) -> None:
    monkeypatch.setattr(tool_processes, "_KEPT", 50_000)
    output = Output(str(tmp_path / "o.txt"), Mask(None))
    output.take(b"a" * 30_000)
    output.take(b"a" * (size - 30_000))
    assert f"{kept} is in {tmp_path}/o.txt" in output.end()
    assert (tmp_path / "o.txt").stat().st_size == 50_000


def test_a_full_disk_keeps_a_part_of_an_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_all(fd: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tool_processes, "write_all", write_all)
    output = Output(str(tmp_path / "o.txt"), Mask(None))
    output.take(b"a" * 30_000)
    assert "the whole is in" not in output.end()

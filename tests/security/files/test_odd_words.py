"""At stake: whatever JSON a worker writes into a file of its own, nobody's command ends over it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentctl.adapters.git import GitError
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root
from agentctl.domain import events as ev
from agentctl.domain.activity.fold import ActivityFold
from agentctl.domain.activity.view import view_of
from agentctl.domain.answers import check_answer
from agentctl.domain.events import decode, encode
from agentctl.domain.question import Question, question_in
from agentctl.domain.worker.projection import TaskView
from agentctl.domain.worker.reports import entry_of
from agentctl.drivers.order import order_from
from agentctl.errors import AgentctlError, Damaged, UsageError
from agentctl.interfaces.mcp.forms import form_of
from agentctl.interfaces.words.activity import tree_lines
from agentctl.operations.show.listing import row_of
from agentctl.operations.show.results import text_fields
from agentctl.operations.show.tree_view import WorkerTree
from agentctl.operations.start.answer_schema import read_schema
from agentctl.operations.talk.outbox_entry import BadEntry, entry_in
from agentctl.supervision.account.waiters import Awaited
from agentctl.supervision.worktree.recorded import tree_from
from tests import inside
from tests.agent_steps import agent, agent_world, ends, rebuilds_the_same
from tests.life import forge
from tests.mcp_steps import call, talk
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, Completed, by_turns, remove, run, start_argv, worker

#: Half of a character that takes two in UTF-16: what is left where a text was cut between them.
HALF = "\ud83d"
HUGE = 10**400
#: What no field of a file should be, and every field can be.
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 5, HUGE, float("inf"), float("nan"), "", "x", HALF, "\0", "../x", [], [5], [{}], [["a"]], {}]
)
JSON = ODD | st.lists(ODD, max_size=2) | st.dictionaries(st.sampled_from(["id", "label", "path", "error"]), ODD)

#: Questions that cannot be shown or answered, each by another field.
NO_QUESTIONS: dict[str, dict[str, Any]] = {
    "options": {"options": [5]},
    "label": {"options": [{"id": "a"}]},
    "question": {"question": ["Which?"]},
    "kind": {"kind": {}},
    "tool": {"tool": ["Bash"]},
    "arguments": {"tool": "Bash", "arguments": [1]},
}


def asking(*names: str) -> Task:
    """Start workers that ask `Which?`, and wait until they are blocked."""
    task = new_task()
    for name in names:
        spawn(worker("asks", "--option", "a=A", "Which?"), name=name)
    for name in names:
        task.has("agent.blocked", name)
    return task


def question_file(task: Task, name: str) -> Path:
    return task.agent(name) / "interactions" / "q1.json"


@pytest.mark.parametrize("changes", by_turns(NO_QUESTIONS.values(), 3), ids=NO_QUESTIONS)
def test_a_question_that_is_none_hides_no_other(root: Path, changes: dict[str, Any]) -> None:
    task = asking("odd", "good")
    forge(question_file(task, "odd"), **changes)
    told = run("interact", "list")
    assert [line.split("\t")[1] for line in told.out.splitlines()] == ["good"]
    assert "holds no question" in told.err
    assert "holds no question" in run("interact", "respond", "odd", "--id", "q1", "a", check=False).err
    assert run("interact", "respond", "good", "--id", "q1", "a").out.startswith("answered q1 of good")
    run("cancel", "odd")


def test_a_question_that_is_none_ends_no_server(root: Path) -> None:
    task = asking("odd")
    forge(question_file(task, "odd"), options=[5])

    async def fill(_context: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async def to(client: Any) -> None:
        for _ in range(2):
            told = await call(client, "wait", ids=["odd"], timeout_ms=100)
            assert told["status"] == {"odd": "blocked"}

    talk(to, elicitation_callback=fill)
    run("cancel", "odd")


def test_an_answer_that_is_none_is_told_to_its_asker(root: Path) -> None:
    task = asking("odd")
    written = task.agent("odd") / "written"
    written.write_text("{}", encoding="ascii")
    written.rename(task.agent("odd") / "interactions" / "q1.answer.json")  # Half of it would be damaged, and told so.
    task.ended("odd")
    said = (task.agent("odd") / "stderr.log").read_text(encoding="utf-8")
    assert "q1.answer.json holds no answer" in said


QUESTIONS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["select", "confirm", "input"]) | JSON,
        "question": st.sampled_from(["Which?", HALF]) | JSON,
    },
    optional={
        key: st.sampled_from([[{"id": HALF, "label": HALF}], HALF, {"command": HALF}]) | JSON
        for key in ("options", "default", "tool", "arguments", "isCut", "means", "multiple", "other", "deadlineSeconds")
    },
)


@given(QUESTIONS, st.text(max_size=3))
def test_every_question_is_none_or_can_be_shown_and_answered(value: dict[str, Any], answer: str) -> None:
    question = question_in("q1", value)
    if question is not None:
        form = form_of(Root("/nowhere/.agentctl").task("t1").worker("a"), question)
        json.dumps([form.message, form.schema], ensure_ascii=False).encode()
        with contextlib.suppress(AgentctlError):
            check_answer(question, answer)


# -- results, records, events ------------------------------------------------------------------------------------------


def ended(*names: str) -> Task:
    """Start workers that complete."""
    task = new_task()
    for name in names:
        spawn(worker("exits", 0), name=name)
    task.ended(*names)
    return task


def is_no_bug(capsys: pytest.CaptureFixture[str], *args: str) -> Completed:
    """Call a command, which may refuse; return how it ended."""
    told = inside.call(capsys, *args)
    assert "a bug in agentctl" not in told.err, told
    assert told.code in (0, 1, 7), told
    return told


@pytest.mark.parametrize("artifacts", [["a"], 1, [{"path": 1}, {"path": "/a"}]])
def test_a_cut_text_and_odd_files_leave_a_result_readable(
    root: Path, capsys: pytest.CaptureFixture[str], artifacts: Any
) -> None:
    task = ended("odd", "good")
    value = {"summary": f"said {HALF}", "artifacts": artifacts}
    (task.agent("odd") / "result.json").write_text(json.dumps(value), encoding="ascii")
    assert "said \ufffd" in is_no_bug(capsys, "result", "odd").out
    told = json.loads(is_no_bug(capsys, "result", "odd", "--json").out)
    assert [file["path"] for file in told["files"]] == (["/a"] if isinstance(artifacts, list) and artifacts[1:] else [])
    assert is_no_bug(capsys, "join").code == 0
    assert "said \ufffd" in (task.path / "report.md").read_text(encoding="utf-8")


def test_a_cut_text_reaches_a_client(root: Path) -> None:
    task = ended("odd")
    (task.agent("odd") / "result.json").write_text(json.dumps({"summary": HALF}), encoding="ascii")

    async def to(client: Any) -> None:
        told = await call(client, "wait", ids=["odd"])
        assert told["results"]["odd"]["output"] == "\ufffd"

    talk(to)


def test_what_an_agent_said_last_is_read_though_it_was_cut(tmp_path: Path) -> None:
    folder = tmp_path / "tasks" / "t1" / "agents" / "a"
    folder.mkdir(parents=True)
    row = {"at": "x", "type": "message", "id": "m", "phase": "end", "text": f"last {HALF}"}
    (folder / "activity.jsonl").write_text(json.dumps(row) + "\n", encoding="ascii")
    (folder / "spec.json").write_text(json.dumps({"order": {"driver": "claude"}}), encoding="ascii")
    assert text_fields(Root(tmp_path).task("t1").worker("a"))["text"] == "last \ufffd"


ODD_RECORDS: dict[str, tuple[str, Any]] = {
    "changes": ("worktree.json", {"path": "/x", "changes": HUGE}),
    "nul": ("worktree.json", {**dict.fromkeys(("path", "commonDir", "repository"), "/a\0b"), "base": "a" * 40,
                              "branch": "agentctl/t1/odd"}),
    "half": ("worktree.json", {**dict.fromkeys(("path", "commonDir", "repository"), f"/{HALF}"), "base": "a" * 40,
                               "branch": "agentctl/t1/odd"}),
    "argv": ("spec.json", {"argv": [{"a": 1}, 5]}),
    "order": ("spec.json", {"order": {"driver": 5}}),
    "percent": ("progress.json", {"percent": HUGE}),
    "result": ("result.json", {"summary": [HALF], "artifacts": {"a": 1}, "finalMessage": 1}),
}  # fmt: skip
COMMANDS = (
    ("list",), ("tree",), ("show", "odd"), ("result", "odd"), ("join",), ("worktrees",), ("doctor",), ("usage",),
    ("activity", "odd", "--rebuild"), ("interact", "list"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("file", "value"), ODD_RECORDS.values(), ids=ODD_RECORDS)
def test_no_command_falls_over_a_record(
    root: Path, capsys: pytest.CaptureFixture[str], file: str, value: dict[str, Any]
) -> None:
    task = ended("odd")
    (task.agent("odd") / file).write_text(json.dumps(value), encoding="ascii")
    for command in COMMANDS:
        is_no_bug(capsys, *command)


@pytest.mark.parametrize("seconds", ["1" + "0" * 400, "Infinity", "NaN", '"long"'])
def test_no_command_falls_over_a_duration_in_the_log(
    root: Path, capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    task = ended("odd")
    log = task.path / "events.jsonl"
    log.write_text(re.sub(r'"durationSeconds":[^,}]+', f'"durationSeconds":{seconds}', log.read_text()))
    for command in (("list",), ("tree",), ("join",), ("show", "odd")):
        is_no_bug(capsys, *command)
    assert json.loads(is_no_bug(capsys, "list", "--json").out)[0]["durationSeconds"] is None


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_an_activity_that_cannot_be_read_hides_no_other_worker(
    root: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    task = ended("odd", "good")
    for file in (task.agent("odd") / "activity.jsonl", task.path / "observed.jsonl"):
        {"fifo": os.mkfifo, "link": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[kind](file)
    told = is_no_bug(capsys, "tree")
    assert [name in told.out for name in ("odd", "good")] == [True, True]
    assert "activity.jsonl is not a plain file" in told.err
    assert is_no_bug(capsys, "list").code == told.code == 0


PAYLOADS = st.dictionaries(
    st.sampled_from(["durationSeconds", "exitCode", "signal", "reason", "pid", "attempt", "depth", "parent",
                     "survivors", "command", "agent", "driver", "agentId", "uncollected"]), JSON, max_size=6,
)  # fmt: skip
EVENTS = st.lists(
    st.builds(
        lambda kind, ts, payload: {"type": kind, "ts": ts, "agentInstance": "w", "payload": payload},
        st.sampled_from([ev.QUEUED, ev.STARTED, ev.RETRYING, ev.CANCEL_FAILED, ev.COMPLETED, ev.FAILED]), JSON,
        PAYLOADS,
    ), max_size=6,
)  # fmt: skip


@given(EVENTS)
def test_whatever_events_tell_the_worker_can_be_shown(events: list[dict[str, Any]]) -> None:
    view = TaskView()
    view.apply(decode(encode(events), 1))
    for one in view.workers.values():
        row = row_of(Root("/nowhere/.agentctl").task("t1"), one, None, Awaited(FilePath("/nowhere")), 0)
        tree = WorkerTree(row, 0, view_of(ActivityFold(0), ended=True), 0, {}, is_expanded=False)
        assert list(tree_lines(tree))
        json.dumps(tree.to_json(), allow_nan=False)


@given(st.dictionaries(st.sampled_from(["verb", "percent", "text", "summary", "artifact", "id", "kind", "question",
                                        "options", "default", "deadlineSeconds"]),
                       st.sampled_from(["progress", "message", "result", "ask", "input", "q1"]) | JSON))  # fmt: skip
@example({"verb": "ask", "id": "q1", "kind": "input", "question": "x", "options": [], "deadlineSeconds": HUGE})
def test_a_file_in_an_outbox_is_an_entry_or_refused(told: dict[str, Any]) -> None:
    with contextlib.suppress(BadEntry):
        entry = entry_in(json.dumps(told).encode())
        json.dumps(entry.to_json() if isinstance(entry, Question) else entry_of(entry), allow_nan=False)


RECORD = {"path": "/x", "gitDir": "/x", "commonDir": "/x", "repository": "/x", "base": "a" * 40,
          "branch": "agentctl/t1/w"}  # fmt: skip


@given(
    changes=st.dictionaries(
        st.sampled_from(sorted(RECORD)), st.sampled_from(["/a\0b", f"/{HALF}", "x"]) | JSON, max_size=2
    ),
    gone=st.sets(st.sampled_from(sorted(RECORD)), max_size=1),
)
def test_a_record_of_a_worktree_is_a_tree_or_refused(changes: dict[str, Any], gone: set[str]) -> None:
    record = {key: value for key, value in (RECORD | changes).items() if key not in gone}
    with contextlib.suppress(GitError):
        tree = tree_from(record)
        for place in (tree.path, tree.git_dir, tree.common, tree.repository) if tree else ():
            assert os.path.isabs(place)
            assert b"\0" not in os.fsencode(place)


@given(st.dictionaries(st.sampled_from(["driver", "program", "agent", "prompt", "tools", "maxTurns", "walls"]), JSON))
def test_an_order_is_one_or_damaged(value: dict[str, Any]) -> None:
    with contextlib.suppress(Damaged):
        assert order_from(value).to_json()


# -- files without end -------------------------------------------------------------------------------------------------


def test_a_file_without_end_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_task()
    Path("brought").symlink_to("/dev/zero")
    told = inside.call(capsys, "spawn", "--batch", "brought")
    assert (told.code, "brought is too large" in told.err) == (2, True), told
    with pytest.raises(UsageError, match="brought is too large"):
        read_schema("brought")


@pytest.mark.parametrize("kind", ["zero", "sparse"])
@pytest.mark.parametrize(
    ("file", "told"),
    [("current", {"list": (3, "no task is chosen"), "tasks": (0, "t1")}),
     ("tasks/t1/agents/odd/progress.json", {"list": (0, "odd"), "show odd": (0, "odd")})],
    ids=["current", "progress"],
)  # fmt: skip
def test_a_file_without_end_of_a_root_is_not_read_into_memory(
    root: Path, file: str, told: dict[str, tuple[int, str]], kind: str
) -> None:
    ended("odd")
    place = root / file
    remove(root / "chosen")  # What was chosen in this terminal would come before `current`.
    place.unlink(missing_ok=True)
    if kind == "zero":
        place.symlink_to("/dev/zero")
    else:
        place.touch()
        os.truncate(place, 1 << 40)
    for command, expected in told.items():
        found = with_little_memory(*command.split())
        assert (found.returncode, expected[1] in found.stdout + found.stderr) == (expected[0], True), found


def with_little_memory(*args: str) -> subprocess.CompletedProcess[str]:
    """Call a command in a process that may have a gigabyte of addresses."""
    argv = ["sh", "-c", 'ulimit -v 1000000 && exec "$@"', "sh", *PROGRAM, *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("file", ["dialogue.jsonl", "stdout.log"])
def test_no_activity_is_made_again_from_a_file_without_end(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    agent("say yes")
    ends()
    os.truncate(task.agent("a") / file, 1 << 40)
    found = with_little_memory("activity", "a", "--rebuild")
    assert (found.returncode, f"{file} holds a line of more than" in found.stderr) == (1, True), found


def test_an_activity_is_made_again_though_a_line_is_nested_deeper_than_any(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    agent("say yes")
    ends()
    with (task.agent("a") / "dialogue.jsonl").open("a", encoding="ascii") as said:
        said.write("[" * 100_000 + "\n")
    rebuilds_the_same(task)


ODD_INPUTS: tuple[dict[str, object], ...] = (
    {"what": "begin", "offset": -1},
    {"what": "begin", "offset": 10**30},
    {"what": "begin", "offset": True},
    {"what": "begin", "offset": 0, "prompt": 5, "session": [], "at": {}},
    {"what": "answered", "offset": 10**9, "key": [], "answer": {}, "policy": 5},
    {"what": "told", "offset": 0, "text": 5, "interrupt": "x"},
    {"what": [], "offset": 0},
)


def test_no_word_in_what_an_agent_was_told_ends_the_making_again_as_a_bug(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = agent_world(tmp_path, monkeypatch)
    agent("say yes")
    ends()
    said = task.agent("a") / "dialogue.jsonl"
    whole = said.read_bytes()
    for line in ODD_INPUTS:
        said.write_bytes(whole + json.dumps(line).encode() + b"\n")
        is_no_bug(capsys, "activity", "a", "--rebuild")


def test_a_batch_may_come_through_a_pipe(root: Path) -> None:
    task = new_task()
    os.mkfifo("pipe")
    writer = start_argv(["sh", "-c", 'printf \'{"name": "a", "argv": ["true"]}\\n\' >pipe'])
    run("spawn", "--batch", "pipe")
    writer.wait()
    task.ended("a")


def test_a_template_nested_deeper_than_any_is_left_out(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new_task()
    folder = root / "templates" / "deep"
    subprocess.run(["mkdir", "-p", folder / "/".join(["d"] * 1000)], check=True)
    (folder / "task.yaml").write_text("title: x\n", encoding="ascii")
    assert "deep" in is_no_bug(capsys, "templates").out
    assert "more folders than a template" in inside.call(capsys, "trust", str(folder)).err
    for command in (("trust", "--list"), ("new", "x", "--template", "deep")):
        assert "a bug in agentctl" not in inside.call(capsys, *command).err
    subprocess.run(["rm", "-rf", folder], check=True)  # What clears up behind tests goes down step by step.


def test_what_lies_beside_settings_and_is_nested_deeper_than_any_keeps_no_undo(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repository may bring it, under the name of what `install --project` keeps of a file."""
    monkeypatch.chdir(tmp_path)
    Path(".mcp.json.before-agentctl").write_text("[" * 100_000 + "]" * 100_000, encoding="utf-8")
    Path(".mcp.json").write_text('{"mcpServers": {"mine": {"command": "true"}}}', encoding="utf-8")
    run("install", "claude", "--project", "--yes")
    is_no_bug(capsys, "install", "claude", "--project", "--undo", "--yes")
    assert json.loads(Path(".mcp.json").read_bytes()) == {"mcpServers": {"mine": {"command": "true"}}}

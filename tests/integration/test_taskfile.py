"""At stake: each mistake in task.yaml and config.yaml is reported with file, line and key, and harms nothing."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters import yamldoc
from agentctl.adapters.taskdir import TaskDir
from agentctl.adapters.taskyaml import reader, roster
from agentctl.domain.tree.limits import Limits
from agentctl.errors import UsageError
from agentctl.operations.where.task_config import read_config
from tests.ready import ended_task
from tests.steps import Task, new_task, spawn, statuses
from tests.support import run, wait_until, worker

#: The file's content, the line that the error names, and a part of its message.
MISTAKES = [
    ("id: t\nconfig:\n  maxDepth: 1\n  maxDepth: 2\n", 4, "the key 'maxDepth' is given twice"),
    ("id: t\nid: u\n", 2, "the key 'id' is given twice"),
    ("a: &x [1]\nb: *x\n", 2, "aliases are not allowed"),
    ("a: &a {b: 1}\nc:\n  <<: *a\n", 3, "aliases are not allowed"),
    ("id: t\n\tconfig: 1\n", 2, r"\t"),
    ("id: t\nconfig:\n\tmaxDepth: 1\n", 3, r"\t"),
    ("id: t\nconfig: [1, 2]\n", 2, "config must be a mapping"),
    ("id: t\nconfig: 5\n", 2, "config must be a mapping"),
    ("id: t\nconfig: {nope: 1}\n", 2, "unknown key 'nope'"),
    ("id: t\nconfig:\n  graceSeconds: 1\n  timeoutSeconds: soon\n", 4, "timeoutSeconds must be a number"),
    ("config: {maxConcurrentAgents: -1}\n", 1, "maxConcurrentAgents must be a whole number from 0"),
    ("config: {maxConcurrentAgents: 10001}\n", 1, "maxConcurrentAgents"),
    ("config: {maxConcurrentAgents: yes}\n", 1, "maxConcurrentAgents"),
    ("config: {maxConcurrentAgents: 2.5}\n", 1, "maxConcurrentAgents"),
    ("config: {timeoutSeconds: 0}\n", 1, "timeoutSeconds must be a number from 0.001"),
    ("config: {timeoutSeconds: .nan}\n", 1, "timeoutSeconds"),
    ("config: {timeoutSeconds: .inf}\n", 1, "timeoutSeconds"),
    ("config: {graceSeconds: -1}\n", 1, "graceSeconds must be a number from 0 to 3600"),
    ("config: {maxDepth: 65}\n", 1, "maxDepth must be a whole number from 0 to 64"),
    ("config: {maxOutputBytes: 0}\n", 1, "maxOutputBytes"),
    ("config: {maxDepth: null}\n", 1, "maxDepth"),
    ("id: t\nconfig: {maxDepth: !!bool zz}\n", 2, "'zz' is not of type bool"),
    ("id: t\nconfig: {maxDepth: !!int ''}\n", 2, "is not of type int"),
    ("id: t\nconfig: !!map [a]\n", 2, "a mapping was expected"),
    ("id: t\nx: !!python/object/apply:os.system [id]\n", 2, "could not determine a constructor"),
    ("? [a, b]\n: c\n", 1, "is not text"),
    ("1: a\n", 1, "the key 1 is not text"),
    ("id: 'open\n", 2, "end of stream"),
    ("id: {a: b\nc: d\n", 2, "flow mapping"),
    ("--- {a: b}\n--- {c: d}\n", 2, "another document"),
    ("- a\n- b\n", 1, "must be a mapping (key: value), not list"),
    ("hello\n", 1, "must be a mapping (key: value), not str"),
    ("a: b\nc: x\x01y\n", 2, "special characters are not allowed"),
]


def limits_of(text: str | bytes, path: str = "/t/task.yaml") -> Limits:
    data = text if isinstance(text, bytes) else text.encode()
    return reader.read_limits(yamldoc.parse_yaml(Path(path), data))


@pytest.mark.parametrize(("text", "line", "problem"), MISTAKES, ids=[text[:40] for text, _, _ in MISTAKES])
def test_a_mistake_is_told_by_file_line_and_key(text: str, line: int, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        limits_of(text)
    assert caught.value.message.startswith(f"/t/task.yaml:{line}: ")
    assert problem in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32"])
def test_another_encoding_is_told_by_its_line(encoding: str) -> None:
    with pytest.raises(UsageError, match=r"task.yaml:\d: byte 0x[0-9a-f]+ is not UTF-8|special characters"):
        limits_of("id: t\ntitle: café\n".encode(encoding))
    with pytest.raises(UsageError, match=r"task\.yaml:2: byte 0xe9 is not UTF-8"):
        limits_of(b"id: t\ntitle: caf\xe9\n")


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert limits_of(b"\xef\xbb\xbfconfig: {maxDepth: 3}\n").max_depth == 3


BILLION = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{above}'] * 9)}]\n" for above, name in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    "bomb",
    [
        BILLION,
        "a: " + "[" * 100_000,
        "a: " + "{a: " * 50_000,
        "x: y\n" * 300_000,
    ],
    ids=["aliases", "deep lists", "deep mappings", "1.5 MB"],
)  # fmt: skip
@pytest.mark.timeout(20)
def test_a_bomb_is_refused_before_it_goes_off(bomb: str) -> None:
    with pytest.raises(UsageError):
        limits_of(bomb)


def read_or_refuse(data: bytes) -> None:
    try:
        limits_of(data)
    except UsageError as error:
        assert error.message.startswith("/t/task.yaml")  # noqa: PT017 - reading it is as good


@given(st.text(max_size=200) | st.binary(max_size=200))
@pytest.mark.slow
def test_nothing_that_can_be_saved_is_a_bug(content: str | bytes) -> None:
    read_or_refuse(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))


YAML_WORDS = st.sampled_from(
    ["config", ":", " ", "\n", "- ", "{", "}", "[", "]", "!!int ", "!!set ", "!!timestamp ", "!!binary ",
     "!!omap ", "'", '"', "&a ", "*a", "? ", "| ", "1", "maxDepth", "2026-99-99", "0x", "1:2", ".nan", "%", "---", "#",
     "\t", ",", "<<", "~", "é"]
)  # fmt: skip


@given(st.lists(YAML_WORDS, max_size=25).map("".join))
def test_nothing_that_looks_like_yaml_is_a_bug(text: str) -> None:
    read_or_refuse(text.encode())


@pytest.mark.parametrize(
    "missing", ["maxConcurrentAgents", "timeoutSeconds", "graceSeconds", "maxDepth", "maxOutputBytes"]
)
def test_a_partial_config_takes_its_defaults_key_by_key(missing: str) -> None:
    whole = {"maxConcurrentAgents": 2, "timeoutSeconds": 9, "graceSeconds": 1, "maxDepth": 4, "maxOutputBytes": 77}
    lines = "".join(f"  {key}: {value}\n" for key, value in whole.items() if key != missing)
    assert limits_of("config:\n" + lines).to_json() == {
        **Limits().to_json(),
        **whole,
        missing: Limits().to_json()[missing],
    }
    assert limits_of("id: t\n") == limits_of("config:\n") == limits_of("") == Limits()


# -- a file that is being saved ----------------------------------------------------------------------------------


def test_a_file_cut_at_any_byte_is_refused_or_says_what_the_whole_one_says(tmp_path: Path) -> None:
    task = TaskDir(str(tmp_path))
    head = b"id: t\ntitle: A task\nconfig:\n  maxConcurrentAgents: 12\n  timeoutSeconds: 345.5\n# a word\n"
    whole = roster.initial(head)
    for cut in range(len(whole) + 1):
        (tmp_path / "task.yaml").write_bytes(whole[:cut])
        (tmp_path / "config.json").unlink(missing_ok=True)
        try:
            limits = read_config(task).limits
        except UsageError as error:
            assert error.message.startswith(f"{tmp_path}/task.yaml:")  # noqa: PT017
        else:
            assert (limits.max_concurrent_agents, limits.timeout_seconds) == (12, 345.5), f"cut at {cut}"
            assert cut >= len(head) + len(roster.MARKER)


@pytest.mark.slow
def test_while_it_is_half_saved_spawn_refuses_and_everything_else_goes_on(root: Path, tmp_path: Path) -> None:
    task = new_task(cap=2)
    file = task.path / "task.yaml"
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="a1")
    spawn(worker("waits_for_file", tmp_path / "never"), name="a2")
    run("spawn", "--queue", "--name", "a3", "--", "true")
    whole = file.read_bytes()
    for half in (whole[: whole.index(b"config") + 9], b"", b"config: {maxConcurrentAgents: [\n" + roster.MARKER):
        file.write_bytes(half)
        refused = run("spawn", "--name", "b1", "--", "true", check=False)
        assert refused.code == 2
        assert f"{file}:" in refused.err
        assert statuses() == {"a1": "running", "a2": "running", "a3": "queued"}
        assert run("wait-any", "--timeout-seconds", "0", check=False).code == 4
    (tmp_path / "gate").touch()
    assert run("wait", "a1", "a3", "--json").json[0]["status"] == "completed"
    assert run("cancel", "a2", "--json").json["cancelled"] is True
    assert file.read_bytes() == b"config: {maxConcurrentAgents: [\n" + roster.MARKER
    assert not (task.path / "agents" / "b1").exists()
    file.write_bytes(whole)
    statuses()
    wait_until(task.roster, accept=lambda rows: rows == {"a1": "completed", "a2": "failed", "a3": "completed"})


@pytest.mark.slow
def test_a_lost_marker_is_told_and_doctor_puts_it_back(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    task = ended_task(tmp_path_factory)
    file = task.path / "task.yaml"
    head = roster.read_head(TaskDir(str(task.path))).rstrip(b"\n")
    file.write_bytes(head)
    assert "is missing" in run("spawn", "--", "true", check=False).err
    assert "is missing" in run("doctor", check=False).out
    assert run("doctor", "--fix").code == 0
    assert file.read_bytes().startswith(head + b"\n" + roster.MARKER)
    assert task.roster() == {"a1": "completed", "a2": "failed", "a3": "failed"}


# -- a person's defaults -----------------------------------------------------------------------------------------


@pytest.fixture
def defaults(root: Path) -> Path:
    file = Path(os.environ["HOME"]) / ".config" / "agentctl" / "config.yaml"
    file.parent.mkdir(parents=True)
    return file


def test_a_new_task_gets_a_persons_defaults_and_a_given_limit_wins(defaults: Path) -> None:
    defaults.write_text("config:\n  maxConcurrentAgents: 3\n  graceSeconds: 0.5\n", encoding="utf-8")
    task = Task(Path(run("new", "x", "--max-concurrent", "7", "--json").json["path"]))
    limits = limits_of((task.path / "task.yaml").read_bytes())
    assert (limits.max_concurrent_agents, limits.grace_seconds, limits.max_depth) == (7, 0.5, 1)


def test_bad_defaults_are_told_and_make_no_task(defaults: Path, root: Path) -> None:
    for content, line in ((b"config: {maxDepth: deep}\n", 1), (b"x: 1\n", 1), (b"config:\n  caf\xe9: 1\n", 2)):
        defaults.write_bytes(content)
        refused = run("new", "x", check=False)
        assert refused.code == 2
        assert f"{defaults}:{line}: " in refused.err
    defaults.unlink()
    defaults.mkdir()
    assert f"cannot read {defaults}" in run("new", "x", check=False).err
    assert not list((root / "tasks").glob("*"))

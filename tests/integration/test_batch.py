"""At stake: a batch is accepted or refused as a whole, and a bad line is named by source and number."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agentctl.errors import UsageError
from agentctl.operations.start import spawning
from agentctl.operations.start.batch import read_batch
from agentctl.operations.start.requests import SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.where.locating import find_task
from agentctl.supervision.dispatch.dispatch import Dispatched, answers
from tests.inside import call
from tests.steps import Task, new_task, spawn_batch, statuses
from tests.support import run

GOOD = json.dumps({"name": "good", "argv": ["true"]})


def untouched(task: Task) -> bool:
    """Return whether a batch has created nothing."""
    return not list((task.path / "agents").iterdir()) and not task.tickets() and not task.events("agent.queued")


#: A line that is not a request, and the error about it.
NO_REQUESTS = [
    ("{", "not JSON"),
    ("[]", "it must be an object"),
    ('{"argv": "true"}', "argv must be a list of texts"),
    ('{"argv": []}', "argv is missing"),
    ('{"name": "x"}', "argv is missing"),
    ('{"argv": ["true"], "shell": "true"}', "argv and shell are each a command"),
    ('{"shell": "true", "model": "m"}', "model is for an agent, and shell for a command"),
    ('{"argv": ["true"], "nmae": "x"}', "unknown key 'nmae'"),
    ('{"argv": ["true"], "timeout_seconds": 1, "timeout-seconds": 2}', "is given twice"),
    ('{"argv": ["true"], "priority": true}', "priority must be a whole number"),
    ("[" * 100_000, "not JSON"),
]
#: A line with an impossible request, and the error about it.
NO_GOOD = [
    ('{"argv": ["true"], "priority": 5000}', "the priority must be from"),
    ('{"argv": ["true"], "retries": -1}', "retries must be from 0"),
    ('{"argv": ["true"], "timeoutSeconds": 0}', "timeoutSeconds must be"),
    ('{"argv": ["true"], "name": "../x"}', "'../x' is not a name"),
    ('{"argv": ["true"], "name": "good"}', "is given twice"),
    ('{"argv": ["true"], "after": ["nobody"]}', "no worker 'nobody'"),
    ('{"argv": ["./missing"]}', "no program './missing'"),
    ('{"argv": ["true"], "cwd": "missing"}', "missing does not exist"),
    ('{"argv": ["a\\u0000b"]}', "cannot be passed to a program"),
]


@pytest.mark.parametrize(
    ("key", "hint"), [("nmae", "did you mean 'name'?"), ("xyz", "known: argv, shell, queue, name")]
)
def test_the_nearest_key_of_a_wrong_one_is_told(key: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_batch([json.dumps({"argv": ["true"], key: "x"})], "jobs.jsonl")
    assert str(refused.value.hint).startswith(hint)


@pytest.mark.parametrize(("line", "said"), NO_REQUESTS, ids=[said for _, said in NO_REQUESTS])
def test_a_line_that_is_no_request_is_named(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as refused:
        read_batch(["# a comment", "", GOOD, line, GOOD], "jobs.jsonl")
    assert refused.value.message.startswith("jobs.jsonl:4: ")


def test_a_bad_line_is_named_and_nothing_starts(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = new_task()
    for number, (line, said) in enumerate([NO_REQUESTS[0], *NO_GOOD]):
        file = tmp_path / f"batch-{number}.jsonl"
        file.write_text(f"# three lines stand above the bad one\n\n{GOOD}\n{line}\n{GOOD.replace('good', 'last')}\n")
        refused = call(capsys, "spawn", "--batch", str(file))
        assert refused.code in (2, 3), refused
        assert refused.err.startswith(f"error: {file}:4: "), refused.err
        assert said in refused.err
        assert untouched(task), f"something was made of {line}"


def test_an_instance_that_exists_refuses_the_whole_batch(root: Path) -> None:
    task = new_task()
    run("spawn", "--wait", "--name", "taken", "--", "true")
    lines = "".join(json.dumps({"name": name, "argv": ["true"]}) + "\n" for name in ("new", "taken"))
    refused = run("spawn", "--batch", "-", stdin=lines, check=False)
    assert refused.code == 1
    assert refused.err.startswith("error: stdin:2: the instance 'taken' exists already")
    assert [path.name for path in (task.path / "agents").iterdir()] == ["taken"]
    assert statuses() == {"taken": "completed"}


def test_keys_may_be_written_as_options_in_snake_or_in_camel_case(root: Path) -> None:
    task = new_task()
    spawn_batch(
        [
            {"name": "a", "argv": ["true"], "timeout-seconds": 11, "keep-children": True},
            {"name": "b", "argv": ["true"], "timeout_seconds": 12, "retry_delay_seconds": 0.5},
            {"name": "c", "argv": ["sh", "-c", 'test "$K" = "v w"'], "timeoutSeconds": 13, "env": {"K": "v w"}},
        ]
    )
    task.ended("a", "b", "c")
    specs = {name: json.loads((task.agent(name) / "spec.json").read_bytes()) for name in "abc"}
    assert [specs[name]["timeoutSeconds"] for name in "abc"] == [11, 12, 13]
    assert specs["a"]["keepChildren"] is True
    assert specs["b"]["retryDelaySeconds"] == 0.5
    assert set(statuses().values()) == {"completed"}


def test_the_lines_keep_their_order(root: Path) -> None:
    task = new_task(cap=1)
    names = [f"w{number}" for number in range(12)]
    told = spawn_batch([{"name": name, "argv": ["true"]} for name in names])
    assert [one["agentInstance"] for one in told] == names
    task.ended(*names)
    assert task.order("agent.queued") == names
    assert task.order("agent.started") == names


@pytest.mark.parametrize(("argv", "outcome"), [(["false"], "queued"), (["{tmp}/bad"], "failed")])
def test_what_failed_by_itself_before_the_outcome_is_read_was_queued(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], outcome: str
) -> None:
    """The exit code of a spawn says whether its workers could be started, however slow the spawn is."""
    task = new_task(cap=1)
    bad = tmp_path / "bad"
    bad.write_text(f"#!{tmp_path}/missing\n", encoding="utf-8")
    bad.chmod(0o700)

    def late(done: Dispatched) -> dict[str, dict[str, object]]:
        found = answers(done)
        task.ended("first", "second")
        return found

    monkeypatch.setattr(spawning, "answers", late)
    requests = [
        SpawnRequest(name="first", argv=["true"]),
        SpawnRequest(name="second", argv=[one.format(tmp=tmp_path) for one in argv]),
    ]
    assert [one.status for one in spawn_workers(find_task(None), requests, queue=True)] == ["running", outcome]


def test_an_empty_batch_is_refused(root: Path) -> None:
    task = new_task()
    refused = run("spawn", "--batch", "-", stdin="\n# nothing\n", check=False)
    assert refused.code == 2
    assert "stdin holds no worker" in refused.err
    assert untouched(task)

"""At stake: an answer fits the schema that was asked for, or the worker has failed; no mismatch is ignored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agent_steps import agent, agent_world, ends, plays
from tests.steps import Task, statuses
from tests.support import alike, run

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Make a task, with one agent program installed."""
    return agent_world(tmp_path, monkeypatch)


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """Write a schema to a file."""
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA), encoding="utf-8")
    return file


def answers(folder: Path, *texts: str) -> str:
    """Return the prompt that makes the agent program give one answer after the other."""
    return plays(
        folder,
        f"""
texts = {list(texts)!r}
def turn(prompt):
    me.turns += 1
    me.answer(texts.pop(0))
me.turn = turn
me.answer(texts.pop(0))
""",
    )


def test_an_answer_that_fits_is_the_result_in_its_plain_form(task: Task, schema: Path, tmp_path: Path) -> None:
    agent(answers(tmp_path, '```json\n{"n": 1}\n```'), "--output-schema", schema)
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", '{"n": 1}')


def test_an_answer_that_does_not_fit_is_mended_when_it_is_told_why(task: Task, schema: Path, tmp_path: Path) -> None:
    agent(answers(tmp_path, "one", '{"n": "one"}', '{"n": 1}'), "--output-schema", schema)
    end = ends()
    assert (end["status"], end["result"]["finalMessage"]) == ("completed", '{"n": 1}')
    rows = (task.agent("a") / "activity.jsonl").read_text(encoding="utf-8")
    assert rows.count("does not have the form") == 2
    assert "the answer.n must be of type integer" in rows


@pytest.mark.slow
def test_an_answer_that_never_fits_fails_for_it(task: Task, schema: Path, tmp_path: Path) -> None:
    agent(answers(tmp_path, "one", "two", "three", '{"n": 4}'), "--output-schema", schema)
    end = ends()
    assert (end["status"], end["reason"]) == ("failed", "schema")
    assert end["result"]["finalMessage"] == "three"
    assert end["result"]["success"] is False


@pytest.mark.slow
def test_a_program_that_knows_no_schemas_is_asked_in_words_and_checked(task: Task, schema: Path) -> None:
    folder = Path(os.environ["HOME"]) / ".agentctl" / "agents"
    folder.mkdir(parents=True)
    for name, answer in {"good": '{"n": 2}', "bad": "{}"}.items():
        script = f"case $0 in *fits*schema*) echo '{answer}';; esac"
        head = f"name: {name}\ndescription: d\ndriver: command\nargv: {json.dumps(['/bin/sh', '-c', script])}"
        (folder / f"{name}.md").write_text(f"---\n{head}\n---\n", encoding="utf-8")
        run("spawn", "--agent", name, "--name", name, "--output-schema", schema, "count")
    assert ends("good")["result"]["finalMessage"] == '{"n": 2}'
    assert "the answer lacks n" in ends("bad")["message"]
    assert ends("bad")["reason"] == "schema"


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"if": {}}', "'if', which cannot be checked"), *alike(
        ("{", "is not JSON"), ("[]", "must be an object"),
        ('{"properties": {"a": {"type": "int"}}}', "properties.a: type cannot be"), ("{}", "asks for nothing"))],
)  # fmt: skip
def test_a_schema_that_cannot_be_checked_is_refused_before_anything_is_made(
    task: Task, tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(text, encoding="utf-8")
    line = json.dumps({"prompt": "say x", "agent": "general", "outputSchema": str(file)})
    refused = run("spawn", "--batch", "-", stdin=line, check=False)
    assert refused.code == 2
    assert message in refused.err
    assert statuses() == {}

"""At stake: a template makes a whole task or none: each mistake is reported with file and line before that."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from agentctl.adapters.taskdir import Root
from agentctl.errors import UsageError
from agentctl.operations.start.from_template import create_from_template
from agentctl.operations.trust.templates import Template, powers_of
from tests.steps import Task, statuses
from tests.support import run

GOOD = """\
name: mine
description: two workers
title: "Look at {place}"
parameters:
  place: {description: where to look, default: .}
  word: {description: what to say}
config: {maxConcurrentAgents: 2, graceSeconds: 0.2}
roster:
  - name: first
    argv: ["/bin/sh", "-c", "echo '{word}' {{braces}}; cat {template}/note.txt"]
    env: {PLACE: "{place}"}
  - name: second
    argv: ["{python}", "-c", "import os; print(os.environ['PLACE'], os.getcwd(), '{task}')"]
    env: {PLACE: "in {place}"}
    after: [first]
"""
#: A change to the good template, the line that the error names, and a part of its message.
MISTAKES = [
    ("name: mine", "nam: mine", 1, "unknown key 'nam'"),
    ('{place}"\nparam', '{plcae}"\nparam', 3, "unknown {plcae}"),
    ('{place}"\nparam', '{place!r}"\nparam', 3, "unknown {place}"),
    ('{place}"\nparam', '{place.__class__}"\nparam', 3, "unknown {place.__class__}"),
    ('{place}"\nparam', '{0}"\nparam', 3, "unknown {0}"),
    ('{place}"\nparam', '{place"\nparam', 3, "a literal brace is {{ or }}"),
    ("config: {max", "config: {Max", 7, "unknown key 'Maxn"[:13]),
    ("graceSeconds: 0.2", "graceSeconds: -2", 7, "graceSeconds must be"),
    ("    after: [first]", "    afterr: [first]", 12, "unknown key 'afterr'"),
    ("    after: [first]", "    priority: high", 12, "priority must be a whole number"),
    ('PLACE: "in {place}"', 'PLACE: "in {nowhere}"', 14, "unknown {nowhere}"),
    ("  - name: second\n    argv", "  - name: second\n    arg", 12, "unknown key 'arg'"),
    ("roster:\n", "roster:\n  x: 1\n  y:\n", 8, "roster must be a list"),
    ("place: {description: where to look, default: .}", "place: where", 4, "parameters must be a mapping"),
    ("config: {max", "config: {queue: 3, max", 7, "queue must be true or false, not 3"),
    ("  word: {", "  place: {", 6, "is given twice"),
    ("roster:\n", "\troster:\n", 8, "\\t"),
]


@pytest.fixture
def template(root: Path) -> Path:
    folder = Path(os.environ["HOME"]) / ".config" / "agentctl" / "templates" / "mine"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "task.yaml").write_text(GOOD, encoding="utf-8")
    (folder / "note.txt").write_text("a note\n", encoding="utf-8")
    return folder


def made(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "tasks").glob("*"))


def test_placeholders_are_filled_and_the_files_are_the_tasks_own(template: Path, root: Path) -> None:
    told = run("new", "--template", "mine", "--set", 'word=its {place} \\ "x"', "--start", "--json").json
    task = Task(Path(told["path"]))
    run("wait-all")
    assert statuses() == {"first": "completed", "second": "completed"}
    first = (task.agent("first") / "stdout.log").read_text(encoding="utf-8")
    assert first == 'its {place} \\ "x" {braces}\na note\n', "a value is put in as it is, and not read again"
    second = (task.agent("second") / "stdout.log").read_text(encoding="utf-8")
    assert second == f"in . {os.getcwd()} {task.path}\n"
    assert run("tasks", "--json").json[0]["title"] == "Look at ."
    assert "maxConcurrentAgents: 2" in (task.path / "task.yaml").read_text(encoding="utf-8")
    (template / "note.txt").unlink()
    assert (task.path / "template" / "note.txt").exists()


@pytest.mark.parametrize(("old", "new", "line", "problem"), MISTAKES, ids=[new[:24] for _, new, _, _ in MISTAKES])
def test_a_mistake_is_told_by_file_and_line_and_makes_no_task(
    template: Path, root: Path, old: str, new: str, line: int, problem: str
) -> None:
    assert GOOD.count(old) == 1
    (template / "task.yaml").write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        create_from_template(Root(str(root)), "mine", {"word": "x"})
    assert caught.value.message.startswith(f"{template}/task.yaml:{line}: ")
    assert problem in caught.value.message
    assert made(root) == []


def test_parameters_that_are_unknown_missing_or_malformed_are_told(template: Path, root: Path) -> None:
    for values, problem in (
        ([], "the parameter 'word' has no value"),
        (["word=x", "wrod=y"], "the template has no parameter 'wrod'"),
        (["word"], "is not of the form K=V"),
        (["=x"], "is not of the form K=V"),
    ):
        refused = run("new", "--template", "mine", *(f"--set={value}" for value in values), check=False)
        assert refused.code == 2
        assert problem in refused.err
        assert "hint:" in refused.err or "form K=V" in problem
    assert made(root) == []


@pytest.mark.parametrize(
    ("type_", "value", "problem"),
    [
        ("folder", "no/such", "there is no folder {here}/no/such"),
        ("folder", "a file", "{here}/a file is not a folder"),
        ("file", ".", "{here}/. is not a file"),
        ("path", "a file/below", "there is no file or folder {here}/a file/below"),
        ("path", "", "is empty"),
        ("flie", ".", "must be one of text, path, folder, file, not 'flie'"),
    ],
)
def test_a_parameter_that_names_a_place_is_looked_at_before_anything_is_made(
    template: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_: str, value: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    (template / "task.yaml").write_text(GOOD.replace("default: .}", f"default: ., type: {type_}}}"), encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(problem.format(here=tmp_path))):
        create_from_template(Root(str(root)), "mine", {"word": "x", "place": value})
    assert made(root) == []


@pytest.mark.parametrize(("type_", "value"), [("folder", "."), ("file", "a file"), ("path", "."), ("text", "no/such")])
def test_a_parameter_that_names_what_is_there_is_taken(
    template: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, type_: str, value: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a file").touch()
    (template / "task.yaml").write_text(GOOD.replace("default: .}", f"type: {type_}}}"), encoding="utf-8")
    create_from_template(Root(str(root)), "mine", {"word": "x", "place": value})
    assert len(made(root)) == 1


def test_a_place_that_is_empty_by_default_may_be_left_out(template: Path, root: Path) -> None:
    (template / "task.yaml").write_text(GOOD.replace("default: .}", "default: '', type: file}"), encoding="utf-8")
    create_from_template(Root(str(root)), "mine", {"word": "x"})
    assert len(made(root)) == 1


def test_the_survey_of_a_folder_that_is_not_there_makes_no_task(root: Path, tmp_path: Path) -> None:
    refused = run("new", "--template", "shipped:survey", "--set", f"path={tmp_path}/none", check=False)
    assert refused.code == 2
    assert f"the parameter 'path': there is no folder {tmp_path}/none" in refused.err
    assert made(root) == []


SHELL = """\
parameters:
  word: {description: what to say, default: "; touch hacked"}
roster:
  - {name: first, shell: "echo LINE | awk '{{print $1}}'"}
"""


def test_a_line_of_a_shell_takes_no_parameter(template: Path, root: Path) -> None:
    (template / "task.yaml").write_text(SHELL.replace("LINE", "{word}"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"task.yaml:4: a shell would read a parameter"):
        create_from_template(Root(str(root)), "mine", {})
    assert made(root) == []
    (template / "task.yaml").write_text(SHELL.replace("LINE", "one two"), encoding="utf-8")
    task = Task(Path(run("new", "--template", "mine", "--start", "--json").json["path"]))
    run("wait-all")
    assert (task.agent("first") / "stdout.log").read_text(encoding="utf-8") == "one\n"


def test_who_is_asked_to_trust_a_template_sees_its_lines_of_a_shell(template: Path) -> None:
    (template / "task.yaml").write_text(SHELL, encoding="utf-8")
    assert powers_of(Template(template, of_root=True)) == ["it runs /bin/sh -c echo LINE | awk '{{print $1}}'"]


def test_an_empty_value_is_a_value(template: Path) -> None:
    task = Task(Path(run("new", "--template", "mine", "--set", "word=", "--json").json["path"]))
    requests = json.loads((task.path / "template" / "roster.json").read_bytes())["requests"]
    assert requests[0]["argv"][2].startswith("echo '' {braces}")


@pytest.mark.parametrize("content", ["{}", '{"requests": 1}', '{"requests": [1]}'])
def test_orders_that_are_no_longer_in_their_file_are_told(template: Path, root: Path, content: str) -> None:
    task = Task(Path(run("new", "--template", "mine", "--set", "word=x", "--json").json["path"]))
    (task.path / "template" / "roster.json").write_text(content, encoding="utf-8")
    refused = run("spawn-template", check=False)
    assert refused.code == 1
    assert "roster.json holds no orders of workers" in refused.err


def test_a_default_that_says_nothing_is_nothing(template: Path) -> None:
    (template / "task.yaml").write_text(GOOD.replace("default: .", "default:"), encoding="utf-8")
    assert run("new", "--template", "mine", "--set", "word=x", "--json").code == 0
    assert run("tasks", "--json").json[0]["title"] == "Look at "


def test_nothing_is_started_until_it_is_said_and_then_once(template: Path) -> None:
    run("new", "--template", "mine", "--set", "word=x")
    assert statuses() == {}
    run("spawn-template")
    run("wait-all")
    for command in (["spawn-template"], ["spawn", "--roster"]):
        again = run(*command, check=False)
        assert again.code == 1
        assert "were started already: first, second" in again.err
    run("new", "plain")
    assert "was made from no template" in run("spawn-template", check=False).err


def test_the_workers_of_a_template_can_be_waited_for(template: Path) -> None:
    run("new", "--template", "mine", "--set", "word=x")
    rows = run("spawn-template", "--wait", "--json").json
    assert [(row["agentInstance"], row["status"]) for row in rows] == [("first", "completed"), ("second", "completed")]


def test_the_flag_from_before_the_command_starts_a_template_too(template: Path) -> None:
    run("new", "--template", "mine", "--set", "word=x")
    assert [row["agentInstance"] for row in run("spawn", "--roster", "--json").json] == ["first", "second"]
    run("wait-all")


def test_an_unknown_template_is_told_with_the_known_and_ones_own_hides_a_shipped_one(
    template: Path, root: Path
) -> None:
    unknown = run("new", "--template", "mien", check=False)
    assert unknown.code == 3
    assert "mine" in unknown.err
    assert "survey" in unknown.err
    template.rename(template.with_name("survey"))
    rows = run("templates", "--json").json
    assert [row["source"] for row in rows if row["name"] == "survey"] == [str(template.with_name("survey"))]


@pytest.mark.parametrize("option", [["--max-concurrent", "3"], ["--grace-seconds", "1"]])
def test_limits_beside_a_template_are_refused_rather_than_forgotten(
    template: Path, root: Path, option: list[str]
) -> None:
    assert "brings its own limits" in run("new", "--template", "mine", *option, check=False).err
    assert made(root) == []

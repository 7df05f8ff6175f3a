"""At stake: the workers of the survey template examine any tree, and what they report about it is true."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import yaml

from tests.processes import children_of, words_of
from tests.support import REPOSITORY, alike, run, text_in, wait_until

TEMPLATE = REPOSITORY / "task_templates" / "survey"
WORKERS = ("size", "todos", "functions", "dependencies", "deepscan")


class Done(NamedTuple):
    code: int
    err: str
    findings: dict[str, Any]

    @property
    def text(self) -> str:
        """The section of the report, with one space where a table has many."""
        return re.sub(r" +", " ", "\n".join(self.findings["markdown"]))


def gone(tmp_path: Path) -> dict[str, str]:
    """The environment of a worker whose task is not there any more."""
    return {"AGENTCTL_TASK": "gone", "AGENTCTL_ROOT": str(tmp_path / "missing")}


def environment(tmp_path: Path, name: str, **more: str) -> dict[str, str]:
    folder = grow(tmp_path / "agents" / name, {})
    kept = {name: value for name, value in os.environ.items() if name not in ("AGENTCTL_TASK", "AGENTCTL_ROOT")}
    return {**kept, "AGENTCTL_AGENT_DIR": str(folder), **more}


def command_of(name: str, tree: Path, *options: str) -> list[str]:
    return [sys.executable, str(TEMPLATE / "workers" / f"{name}.py"), str(tree), *options]


def survey(tmp_path: Path, name: str, tree: Path, *options: str, **more: str) -> Done:
    """Run one worker as a person would by hand, with a folder of its own beside those of the others."""
    command, environ = command_of(name, tree, *options), environment(tmp_path, name, **more)
    done = subprocess.run(command, env=environ, capture_output=True, check=False, timeout=50)
    found = Path(environ["AGENTCTL_AGENT_DIR"]) / "findings.json"
    findings = json.loads(found.read_text()) if found.exists() else {}
    return Done(done.returncode, done.stderr.decode(), findings)


def examined(tmp_path: Path, name: str, tree: Path, *options: str) -> Done:
    done = survey(tmp_path, name, tree, *options)
    assert (done.code, done.err) == (0, "")
    assert done.findings["complete"] is True
    return done


def grow(root: Path, files: Mapping[str, str]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.mark.parametrize("name", [WORKERS[0], *alike(*WORKERS[1:])])
def test_an_empty_tree_is_examined_and_a_missing_one_named(tmp_path: Path, name: str) -> None:
    examined(tmp_path, name, grow(tmp_path / "tree", {}))
    done = survey(tmp_path, name, tmp_path / "nowhere")
    problem = f"cannot list the folder {tmp_path}/nowhere: No such file or directory"
    assert (done.code, done.err) == (1, f"error: {name}: {problem}\n")


def hostile(root: Path) -> Path:
    """One good file among all that a walk can stumble over."""
    files = {
        "good.py": "def good():\n    pass  # TODO: rest\n",
        "evil\x1b[31m\nname.py": "# TODO\ndef evil(): pass\n",
        "binary.py": "\0\1\2" * 1000,
        "huge.py": "x = 1\n" * 200_000,
        "deep.py": "x = " + "(" * 5000 + ")" * 5000 + "\n",
        "negative.py": "x = " + "-" * 50_000 + "1\n",
        "slow.js": "TODO" + "/" * 400_000 + "#" * 400_000 + " " * 200_000,
        "pyproject.toml": "x = " + "[" * 100_000,
    }
    grow(root, files)
    (root / "latin.py").write_bytes(b"# caf\xe9 TODO\n")
    Path(os.fsdecode(bytes(root) + b"/n\xff.py")).write_text("import os\n")
    os.mkfifo(root / "fifo.py")
    (root / "loop").symlink_to(root)
    (root / "dangling.py").symlink_to("nothing")
    folder = os.open(root, os.O_RDONLY)
    for _ in range(20):  # longer than any path the system takes at once
        os.mkdir("d" * 250, dir_fd=folder)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    return root


@pytest.mark.parametrize("name", WORKERS)
def test_a_hostile_tree_is_survived_and_told(tmp_path: Path, name: str) -> None:
    done = examined(tmp_path, name, hostile(tmp_path / "tree"))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.findings["summary"] + done.text.replace("\n", ""))
    if name == "size":
        assert "Not read: binary (1), larger than 1 MiB (1), special file (1), symbolic link (2)." in done.text
        assert "Unreadable: `File name too long: d" in done.text
        assert all(f"`{shown}`" in done.text for shown in ("n\\xff.py", "evil\\x1b[31m\\nname.py", "latin.py"))


def test_size_counts_lines_by_language_and_folder(tmp_path: Path) -> None:
    files = {"app/main.py": "import os\n\n\nprint(os)", "web/deep/er/index.js": "let a = 1\n" * 7, "notes.Zig": "x\n"}
    others = {"node_modules/x/index.js": "let c\n" * 100, "env/pyvenv.cfg": "", "Makefile": ""}
    done = examined(tmp_path, "size", grow(tmp_path / "tree", files | others))
    assert done.findings["summary"] == "12 lines in 4 text files of 4 files; mostly JavaScript, Python, .zig"
    assert done.findings["areas"] == {"app": 4, "web/deep": 7, ".": 1}
    assert "| Python | 1 | 4 | 33.3 % |" in done.text
    assert "version control): `env` and 1 more." in done.text


def test_only_what_begins_a_comment_is_left_to_do(tmp_path: Path) -> None:
    spoken = "kinds = ['TODO', 'FIXME']\nTODO = 1  # TODOS, XXX/HACK and\n"
    strings = 'a = " # TODO in a string"\nb = """\n# FIXME in another\n"""  # HACK after it\n'
    script = "let a = ' // TODO in a string' // and\n/* one\n TODO two */ let b = 1; // FIXME 'three'\n"
    notes = "We use TODO in comments, see https://TODO\n<!-- TODO: four | five `six` \x1b[31m -->\n"
    files = {"a.py": spoken, "b.py": strings, "c.js": script, "notes.md": notes}
    done = examined(tmp_path, "todos", grow(tmp_path / "tree", files))
    assert done.findings["summary"] == "1 TODO, 1 FIXME, 1 HACK"
    assert done.findings["areas"] == {".": 3}
    assert done.text.split("\n")[2:] == [
        "| `b.py:4` | `HACK after it` |",
        "| `c.js:3` | `FIXME 'three'` |",
        "| `notes.md:2` | `` TODO: four \\| five `six` \\x1b[31m `` |",
    ]


PYTHON = """
class Box:
    def walk(self, items):
        for item in items:
            if item == 1:
                pass
            elif item == 2:
                with open(item):
                    pass
        def inner():
            return [a for a in items if a]

async def short(): pass
"""


def test_functions_are_measured_by_their_syntax(tmp_path: Path) -> None:
    done = examined(tmp_path, "functions", grow(tmp_path / "tree", {"box.py": PYTHON, "old.py": "print 'old'\n"}))
    assert "| `Box.walk` | 9 | 3 | `box.py:3` |\n| `Box.walk.inner` | 2 | 0 | `box.py:10` |" in done.text
    assert "| `short` | 1 | 0 | `box.py:13` |" in done.text
    assert "1 file could not be parsed, first `old.py`." in done.text


def two_folders(tmp_path: Path) -> Path:
    long, other = "def long():\n" + "    x = 1\n" * 60, "def other():\n    return 1 or 2\n"
    files = {"small/a.py": "def short():\n    pass\n", "big/core/b.py": long, "big/core/c.py": other}
    return grow(tmp_path / "tree", files)


def test_one_folder_is_looked_into_more_closely_given_or_the_heaviest(tmp_path: Path) -> None:
    tree = two_folders(tmp_path)
    done = examined(tmp_path, "functions", tree)
    assert "nobody to ask outside a task: the default was taken" in done.text
    assert "closer look: `big/core`" in done.text
    assert "| `big/core/b.py` | 1 | 1 | 61 |\n| `big/core/c.py` | 1 | 0 | 2 |" in done.text
    assert "closer look: `small`" in examined(tmp_path, "functions", tree, "--focus", "./small/").text
    done = survey(tmp_path, "functions", tree, "--focus", "medium")
    problem = "no functions below the folder medium; folders with some: big/core, small"
    assert (done.code, done.err) == (1, f"error: functions: {problem}\n")


def test_a_question_that_cannot_be_asked_costs_no_findings(tmp_path: Path) -> None:
    """The task is gone: asking and reporting fail, what was found stays."""
    done = survey(tmp_path, "functions", two_folders(tmp_path), **gone(tmp_path))
    assert done.code == 1
    assert "error: functions: the result could not be declared" in done.err
    assert done.findings["complete"] is True
    assert "the question failed: the default was taken" in done.text


PYPROJECT = """
[project]
name = "app"
dependencies = ["PyYAML>=6", "google-cloud-storage", "unused[x]~=1.0 ; os_name == 'a'", "My.Dotted_Name"]
[project.optional-dependencies]
dev = ["ruff"]
all = ["app[dev]", "extra"]
"""


def test_what_is_declared_is_compared_with_what_is_imported(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": PYPROJECT,
        "requirements/base.txt": "-r other.txt\nPillow==9 # pinned\ngit+https://x/y.git\n",
        "src/app/__init__.py": "import yaml, json\nfrom google.cloud import storage\nfrom . import local\n",
        "src/app/local.py": "import my_dotted_name, app.local\nimport missing.part\n",
        "tests/test_app.py": "import PIL.Image\nimport helper\nimport missing\n",
        "tests/helper.py": "",
        "old/setup.py": "import setuptools\n",
        "old/old.py": "print 'old'\n",
    }
    done = examined(tmp_path, "dependencies", grow(tmp_path / "tree", files))
    counts = "7 packages declared, 2 of them for use and never imported; 1 module imported and not declared"
    assert done.findings["summary"] == f"{counts} (2 remarks)"
    assert "| `extra` | `pyproject.toml` |\n| `unused` | `pyproject.toml` |\n" in done.text
    assert "| `missing` | 2 | `src/app/local.py` |" in done.text
    assert "`old/old.py` cannot be parsed.\n\n`old/setup.py` is of a kind that is not read." in done.text


def test_the_report_waits_for_every_other_worker_however_it_ends() -> None:
    *others, report = yaml.safe_load((TEMPLATE / "task.yaml").read_text())["roster"]
    assert report["name"] == "report"
    assert report["after"] == report["argv"][3:] == [entry["name"] for entry in others]
    assert report["afterAny"] is True


def test_a_report_tells_of_every_part_that_is_missing(tmp_path: Path) -> None:
    examined(tmp_path, "size", two_folders(tmp_path))
    grow(tmp_path / "agents" / "dependencies", {"findings.json": '{"complete": tr'})
    done = examined(tmp_path, "report", tmp_path, "size", "todos", "dependencies")
    assert "report.md joins 1 of 3 parts (not whole: todos unknown, without" in done.findings["summary"]
    report = (tmp_path / "agents" / "report" / "report.md").read_text()
    assert "**This report is not whole**: todos, dependencies." in report
    assert report.count("Not whole: unknown, without findings that can be read.") == 2


def start_survey(root: Path, tree: Path, **settings: str) -> Path:
    """Make a task of the template and start it; return the folder of its workers."""
    given = [f"--set={name}={value}" for name, value in {"path": tree, **settings}.items()]
    run("new", "--template", "survey", "--id", "survey", *given, "--start")
    return root / "tasks" / "survey" / "agents"


def test_as_a_task_the_survey_asks_and_goes_on_with_the_answer(root: Path, tmp_path: Path) -> None:
    agents = start_survey(root, grow(two_folders(tmp_path), {"small/b.py": "# TODO: soon\n"}))
    run("wait-any", "functions", "--for", "blocked")
    (asked,) = run("interact", "list", "--json").json
    assert [one["id"] for one in asked["options"]] == ["big-core", "small", "none"]
    run("interact", "respond", "functions", "--id", asked["id"], "small")
    run("wait-all")
    assert "report.md joins 4 of 4 parts" in run("result", "report").out
    report = (agents / "report" / "report.md").read_text()
    assert "chosen in answer to the question.\n\n### A closer look: `small`" in report
    assert re.search(r"\| `big/core` +\| +63 \| +0 \| +1 \| +61 \|", report)
    assert re.search(r"\| `small` +\| +3 \| +1 \| +0 \| +2 \|", report)


@pytest.mark.slow
def test_as_a_task_the_survey_goes_on_without_an_answer(root: Path, tmp_path: Path) -> None:
    agents = start_survey(root, two_folders(tmp_path), answerSeconds="1")
    run("wait-all")
    assert "no answer within 1 s: the default was taken" in (agents / "report" / "report.md").read_text()


@pytest.mark.slow
def test_as_a_task_the_survey_reports_without_a_cancelled_part(root: Path, tmp_path: Path) -> None:
    agents = start_survey(root, two_folders(tmp_path))
    run("wait-any", "functions", "--for", "blocked")
    run("cancel", "functions")
    run("wait-all", check=False)
    report = (agents / "report" / "report.md").read_text()
    assert "**This report is not whole**: functions." in report
    assert "Not whole: cancelled. What it had found until then:" in report
    assert (agents / "functions" / "stderr.log").read_text() == ""


def test_deepscan_finds_a_copy_whose_names_were_changed(tmp_path: Path) -> None:
    copy, other = PYTHON.replace("Box", "Bag"), "\n".join(f"value_{n} = {n}" for n in range(80))
    files = {"one.py": PYTHON, "two.py": copy.replace("item", "thing"), "other.py": other}
    done = examined(tmp_path, "deepscan", grow(tmp_path / "tree", files))
    assert done.findings["summary"] == "1 pair of files alike, 3 of 3 pairs compared"
    assert re.search(r"`(one|two)\.py` \| `(one|two)\.py` \| [6-9]\d\.\d %", done.text)


def test_a_cancel_ends_a_worker_silently_and_keeps_what_it_found(tmp_path: Path) -> None:
    """It signals the whole tree: here while the worker is just reporting its progress."""
    tree = grow(tmp_path / "tree", {f"{n}.py": PYTHON * 20 + f"\nx = {n}\n" for n in range(40)})
    found = tmp_path / "agents" / "deepscan" / "findings.json"
    environ, command = environment(tmp_path, "deepscan", **gone(tmp_path)), command_of("deepscan", tree)
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, start_new_session=True) as scan:
        worker = psutil.Process(scan.pid)
        wait_until(lambda: any("report" in words_of(one) for one in children_of(worker)), what="a report")
        wait_until(found.exists, what="what was found until now")
        os.killpg(scan.pid, signal.SIGINT)
        _, err = scan.communicate(timeout=10)
    assert scan.returncode == 130
    assert not re.search(rb"Traceback|KeyboardInterrupt", err)
    assert json.loads(text_in(found))["complete"] is False

"""`demo`: the main job on real input, step by step, with the commands that a person would type.

Every line that begins with `$` is run as it stands, by a process of its own: what is shown is what happens.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import agentctl
from agentctl.adapters.personal import home_folder
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AtTerminal, ExitCode, Refused
from agentctl.interfaces.commands.model.command_model import TEXT, Command, Parameter, Showing, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.operations.show.results import read_result
from agentctl.operations.talk.interacting import list_questions
from agentctl.operations.where.locating import find_root, find_task
from agentctl.supervision.worker.environment import ROOT_VARIABLE, TASK_VARIABLE

#: `-P`: a folder `agentctl` that somebody else has put into this one is not run.
_PROGRAM = (sys.executable, "-P", "-m", "agentctl")
_CONSUMER = "demo"
_REPORT_LINES = 40
_QUESTION_LIMIT_S = 40
_FILES = (
    ("task.yaml", "the task and its roster"),
    ("events.jsonl", "who started, asked, ended, and when"),
    ("agents/<instance>/", "spec.json, stdout.log, stderr.log, result.json, exit.json of each worker"),
)


def demo(call: Invocation, *, path: str | None = None) -> Showing:
    """See it all at work in under a minute: five workers survey a source tree.

    It is the working folder where that has Python files, otherwise agentctl's own code. One worker asks a question,
    which is answered as from a second terminal; a long one is cancelled; the report and all files stay for you to look
    at. Needs no key, no agent program and no network.
    """
    task_id = yield from _start(path)
    steps = _Steps(task_id)
    try:
        yield from _play(steps)
    except GeneratorExit:  # Nobody takes what is shown: nothing can be yielded any more.
        raise
    except BaseException:
        yield from steps.carry_out("cancel", "--all", "--grace-seconds", "1", check=False)
        raise
    yield from _finish(steps)
    return ExitCode.DONE


class _Steps:
    """Runs commands in the demo's task, each shown before it is run."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.task = find_task(task_id)
        self._environ = {**os.environ, TASK_VARIABLE: task_id, ROOT_VARIABLE: self.task.root.path}

    def carry_out(self, *args: str, check: bool = True, title: str | None = None) -> Iterator[Shown]:
        """Run one command of agentctl, which prints what it shows itself."""
        yield Shown(None, [f"\n-- {title}"] * bool(title) + [f"$ agentctl {shlex.join(args)}"])
        code = subprocess.run([*_PROGRAM, *args], env=self._environ, check=False).returncode
        if check and code != ExitCode.DONE:
            raise Refused(f"this step of the demo ended with exit code {code}")


def _start(path: str | None) -> Generator[Shown, None, str]:
    from agentctl.operations.trust.templates import SHIPPED

    folder = (_source_tree() if path is None else Path(path)).resolve()
    if not folder.is_dir():
        raise Refused(f"there is no folder {folder}", hint=AtTerminal("agentctl demo --path FOLDER"))
    find_root(None, create=True, apart=True)
    title = "-- a task from the template `survey`: four workers examine a source tree, a fifth joins their findings"
    whose = f"-- the source tree: {plain(str(folder))} (--path FOLDER takes another)"
    args = [
        "new",
        f"Survey of {folder.name or folder}",
        "--template",
        f"{SHIPPED}survey",
        "--set",
        f"path={folder}",
        "--start",
    ]
    yield Shown(None, [title, whose, f"$ agentctl {shlex.join(args)}"])
    done = subprocess.run([*_PROGRAM, *args, "--json"], stdout=subprocess.PIPE, check=False, encoding="utf-8")
    if done.returncode != ExitCode.DONE:
        raise Refused("the survey could not be started")
    value: dict[str, Any] = json.loads(done.stdout)
    yield Shown(None, [f"{value['taskId']}  {plain(str(value.get('path', '')))}"])
    return str(value["taskId"])


def _source_tree() -> Path:
    """Return the working folder if there is something in it to ask about; otherwise agentctl's own code."""
    here = Path.cwd()
    has_python = any(next(here.glob(pattern), None) for pattern in ("*.py", "[!.]*/*.py"))
    # To read a whole home would outlast the steps.
    is_home = here == Path(os.path.realpath(home_folder(os.environ)))
    return here if has_python and not is_home else Path(agentctl.__file__).parent


def _play(steps: _Steps) -> Iterator[Shown]:
    scan = os.path.join(steps.task.template, "workers", "deepscan.py")
    folder = _surveyed(steps)
    yield from steps.carry_out(
        "spawn", "--queue", "--name", "deep-scan", "--", sys.executable, scan, folder, title="one more, a long one"
    )
    yield from steps.carry_out("list", title="what runs, from any terminal")
    limit = ("--timeout-seconds", str(_QUESTION_LIMIT_S))
    yield from steps.carry_out(
        "wait-any",
        "functions",
        *limit,
        "--consumer",
        _CONSUMER,
        title="sleep until the one that asks is blocked, or ends",
    )
    yield from steps.carry_out("interact", "list", title="its question, seen and answered as from a second terminal")
    asked = _asked(steps)
    if asked is not None:
        name, answer = asked
        yield from steps.carry_out("interact", "respond", "functions", "--id", name, answer)
    yield from steps.carry_out("wait", "report", *limit, title="until the report is there")
    yield from steps.carry_out(
        "cancel", "deep-scan", "--grace-seconds", "2", title="stop the long one, with all its processes"
    )
    yield from steps.carry_out("wait-all", check=False, title="how all of them ended")


def _surveyed(steps: _Steps) -> str:
    """Return the folder that the survey examines: the argument of its first worker."""
    from agentctl.supervision.worker.spec import read_spec

    return read_spec(steps.task.worker("size").spec).argv[2]


def _asked(steps: _Steps) -> tuple[str, str] | None:
    """Return the question's id and the option that it proposes; None if it was answered meanwhile, or never asked."""
    found = [one.question for one in list_questions(steps.task.root, steps.task)]
    return next(((one.id, one.default or one.options[0].id) for one in found), None)


def _finish(steps: _Steps) -> Iterator[Shown]:
    result = read_result(steps.task, "report")
    path = str(result["files"][0]["path"]) if result["files"] else ""
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines() if path else []
    yield Shown(None, [f"\n-- the report: {plain(path)}", *map(plain, lines[:_REPORT_LINES])])
    if len(lines) > _REPORT_LINES:
        yield Shown(None, [f"[cut: {_REPORT_LINES} of {len(lines)} lines]"])
    yield Shown(None, [
        "\n-- where everything is",
        f"{plain(steps.task.path)}/",
        *(f"  {name:<20} {what}" for name, what in _FILES),
        f"\nagentctl list --task {steps.task_id} shows it again; nothing of it is running any more.",
    ])  # fmt: skip


COMMANDS = (
    Command(
        "demo",
        demo,
        (),
        """
agentctl demo
agentctl demo --path ~/src/project
""",
        (Parameter("path", TEXT, "The source tree to examine.", "FOLDER"),),
        exits=(ExitCode.UNSUCCESSFUL,),
    ),
)

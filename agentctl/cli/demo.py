"""`demo`: the main job on real input, step by step, with the commands that a person would type.

Every line that begins with `$` is run as it stands, by a process of its own: what is shown is what happens.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agentctl.cli.render import plain
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode, Refused
from agentctl.operations.show.results import read_result
from agentctl.operations.talk.interacting import list_questions
from agentctl.operations.where.locating import find_root, find_task
from agentctl.supervision.worker.environment import ROOT_VARIABLE, TASK_VARIABLE

app = module()

#: `-P`: a folder `agentctl` that somebody else has put into this one is not run.
_PROGRAM = (sys.executable, "-P", "-m", "agentctl")
_CONSUMER = "demo"
_REPORT_LINES = 40
_QUESTION_LIMIT_S = 40


@verb(
    app,
    "demo",
    exits=(ExitCode.UNSUCCESSFUL,),
    examples="""
agentctl demo
agentctl demo --path ~/src/project
""",
)
def demo(
    path: Annotated[str, typer.Option("--path", metavar="FOLDER", help="The source tree to examine.")] = ".",
) -> int:
    """See it all at work in under a minute: five workers survey a source tree.

    One asks a question, which is answered as from a second terminal; a long one is cancelled; the report and all
    files stay for you to look at. Needs no key, no agent program and no network.
    """
    task_id = _start(path)
    steps = _Steps(task_id)
    try:
        _play(steps)
    except BaseException:
        steps.run("cancel", "--all", "--grace-seconds", "1", check=False)
        raise
    return _finish(steps)


class _Steps:
    """Runs commands in the demo's task, each shown before it is run."""

    def __init__(self, task_id: str) -> None:
        self.task_id = task_id
        self.task = find_task(task_id)
        self._environ = {**os.environ, TASK_VARIABLE: task_id, ROOT_VARIABLE: self.task.root.path}

    def run(self, *args: str, check: bool = True, title: str | None = None) -> int:
        """Run one command of agentctl and show what it prints."""
        if title:
            print(f"\n-- {title}")
        print(f"$ agentctl {shlex.join(args)}")
        sys.stdout.flush()
        code = subprocess.run([*_PROGRAM, *args], env=self._environ, check=False).returncode
        if check and code != ExitCode.DONE:
            raise Refused(f"this step of the demo ended with exit code {code}")
        return code


def _start(path: str) -> str:
    from agentctl.operations.trust.templates import SHIPPED

    folder = Path(path).resolve()
    if not folder.is_dir():
        raise Refused(f"there is no folder {folder}", hint="agentctl demo --path FOLDER")
    find_root(None, create=True, apart=True)
    print("-- a task from the template `survey`: four workers examine a source tree, a fifth joins their findings")
    args = ["new", "--template", f"{SHIPPED}survey", "--set", f"path={folder}", "--start"]
    print(f"$ agentctl {shlex.join(args)}")
    sys.stdout.flush()
    done = subprocess.run([*_PROGRAM, *args, "--json"], stdout=subprocess.PIPE, check=False, encoding="utf-8")
    if done.returncode != ExitCode.DONE:
        raise Refused("the survey could not be started")
    return _task_of(done.stdout)


def _task_of(printed: str) -> str:
    import json

    value: dict[str, Any] = json.loads(printed)
    print(f"{value['taskId']}  {plain(str(value.get('path', '')))}")
    return str(value["taskId"])


def _play(steps: _Steps) -> None:
    scan = os.path.join(steps.task.template, "workers", "deepscan.py")
    folder = _surveyed(steps)
    steps.run(
        "spawn", "--queue", "--name", "deep-scan", "--", sys.executable, scan, folder, title="one more, a long one"
    )
    steps.run("list", title="what runs, from any terminal")
    limit = ("--timeout-seconds", str(_QUESTION_LIMIT_S))
    steps.run(
        "wait-any",
        "functions",
        *limit,
        "--consumer",
        _CONSUMER,
        title="sleep until the one that asks is blocked, or ends",
    )
    steps.run("interact", "list", title="its question, seen and answered as from a second terminal")
    asked = _asked(steps)
    if asked is not None:
        name, answer = asked
        steps.run("interact", "respond", "functions", "--id", name, answer)
    steps.run("wait", "report", *limit, title="until the report is there")
    steps.run("cancel", "deep-scan", "--grace-seconds", "2", title="stop the long one, with all its processes")
    steps.run("wait-all", check=False, title="how all of them ended")


def _surveyed(steps: _Steps) -> str:
    """Return the folder that the survey examines: the argument of its first worker."""
    from agentctl.supervision.worker.spec import read_spec

    return read_spec(steps.task.worker("size").spec).argv[2]


def _asked(steps: _Steps) -> tuple[str, str] | None:
    """Return the question's id and the option that it proposes; None if it was answered meanwhile, or never asked."""
    found = [one.question for one in list_questions(steps.task.root, steps.task)]
    return next(((one.id, one.default or one.options[0].id) for one in found), None)


def _finish(steps: _Steps) -> int:
    result = read_result(steps.task, "report")
    path = str(result["files"][0]["path"]) if result["files"] else ""
    print(f"\n-- the report: {plain(path)}")
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines() if path else []
    for line in lines[:_REPORT_LINES]:
        print(plain(line))
    if len(lines) > _REPORT_LINES:
        print(f"[cut: {_REPORT_LINES} of {len(lines)} lines]")
    print("\n-- where everything is")
    print(f"{plain(steps.task.path)}/")
    for name, what in (
        ("task.yaml", "the task and its roster"),
        ("events.jsonl", "who started, asked, ended, and when"),
        ("agents/<instance>/", "spec.json, stdout.log, stderr.log, result.json, exit.json of each worker"),
    ):
        print(f"  {name:<20} {what}")
    print(f"\nagentctl list --task {steps.task_id} shows it again; nothing of it is running any more.")
    return ExitCode.DONE

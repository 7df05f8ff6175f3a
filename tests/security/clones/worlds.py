"""A person's folders, the clone of a stranger's repository among them, and what no command may touch.

BASE/clone      the repository, with a task `build` in it: `w` has ended, `v` asks, `q` waits in the queue
BASE/outside    files and folders of the person: the targets of links
BASE/home  run  tmp    where agentctl and the programs of the person have their own
BASE/PWNED      made by every hostile program
"""

# ruff: noqa: E501 - the tables are easier to look over in rows.

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from agentctl.adapters import origin
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import TaskDir
from agentctl.operations.where.ownership import stable_text

_CLONE = "clone"
ROOT = ".agentctl"
TASK = f"{ROOT}/tasks/build"
#: Of somebody else's machine.
STRANGER = {"machine": "0" * 32, "boot": "0" * 8, "pidNamespace": "pid:[4026531836]", "pid": 4242, "start": 77}
LIMITS = {
    "maxConcurrentAgents": 5, "timeoutSeconds": 3600, "graceSeconds": 0.1, "maxDepth": 1, "maxOutputBytes": 1 << 30,
    "retryCeilingSeconds": 60, "stallSeconds": 300, "maxTokens": 0, "maxCostUsd": 0, "maxWorkers": 0,
    "maxWallSeconds": 0, "breakerFailures": 5, "breakerCooldownSeconds": 300, "cooldownSeconds": 60,
}  # fmt: skip
#: What the marks of the clone's task are bound to: who ships a task can make its orders fit.
ORIGIN = "0" * 32
_AT = "2026-11-22T17:44:53.245Z"
_HEAD = f'id: build\ntitle: Build\ncreatedAt: "{_AT}"\nconfig: {{graceSeconds: 0.1}}\n'
ROSTER = """# --- kept by agentctl below this line ---
state: input-required
roster:
  - {instance: w, agent: command, state: completed}
  - {instance: v, agent: command, state: awaiting}
  - {instance: q, agent: command, state: pending}
"""


def spec(instance: str, argv: list[str], **more: Any) -> dict[str, Any]:
    """Return the order of a worker."""
    return {
        "agentInstance": instance, "agent": "command", "argv": argv, "cwd": "/", "envNames": ["PATH"],
        "timeoutSeconds": 3600, "graceSeconds": 0.1, "maxOutputBytes": 1 << 30, "umask": 18, "priority": 0,
        "after": [], "afterAny": False, "retries": 0, "retryDelaySeconds": 1.0, "keepChildren": False, "parent": None,
        "depth": 0, "key": None, "stallSeconds": 300, "origin": ORIGIN, **more,
    }  # fmt: skip


def event(what: str, instance: str | None = None, by: str = "agentctl", /, **payload: Any) -> dict[str, Any]:
    """Return a line of the log."""
    named = {"agentInstance": instance} if instance else {}
    return {"ts": _AT, "type": what, "taskId": "build", **named, "by": by, "payload": {**named, **payload}}


def config(**changes: Any) -> dict[str, Any]:
    """Return `config.json`."""
    return {
        "head": _HEAD, "config": LIMITS, "title": "Build", "parentTaskId": None, "rootTaskId": None,
        "parentInstance": None, "agent": None, "createdAt": _AT, "permissions": [], "childrenAtEnd": "wait", **changes,
    }  # fmt: skip


def _lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


_EVENTS = (
    event("task.created", by="user", title="Build"),
    event("agent.queued", "w", "user", agent="command", command="make"),
    event("agent.started", "w", pid=4243, shimPid=4242),
    event("agent.completed", "w", exitCode=0, durationSeconds=0.05),
    event("agent.queued", "v", "user", agent="command", command="make check"),
    event("agent.started", "v", pid=4245, shimPid=4244),
    event("interaction.requested", "v", "v", id="q1", kind="confirm", question="go on?", options=[], default="yes"),
    event("agent.blocked", "v", "v", id="q1"),
    event("agent.queued", "q", "user", agent="command", command="make all", after=["v"]),
)
_EXIT = {
    "status": "completed", "by": "agentctl", "exitCode": 0, "startedAt": _AT, "endedAt": _AT, "durationSeconds": 0.05,
    "attempt": 1, "usage": {"userSeconds": 0.1, "systemSeconds": 0.1, "maxRssKib": 1000},
}  # fmt: skip
_QUESTION: dict[str, Any] = {
    "id": "q1", "askedAt": _AT, "kind": "confirm", "question": "go on?", "options": [], "default": "yes",
    "deadlineSeconds": None, "asker": STRANGER,
}  # fmt: skip
_WORKER = {**STRANGER, "cookie": "0123456789abcdef", "startedAt": _AT, "attempt": 1}
_ROW = {"at": _AT, "type": "message", "id": "m1", "phase": "end", "text": "hello"}


def _worker_files() -> dict[str, str]:
    """Return what a worker that has been through everything leaves behind."""
    one_line = {
        "shim.json": STRANGER, "worker.json": _WORKER, "progress.json": {"at": _AT, "percent": 40.0, "text": "r"},
        "session.json": {"driver": "claude", "session": "s", "model": "m", "at": _AT},
        "spent.json": {"input": 1, "output": 1, "cached": 0, "costUsd": None},
        "interactions/q1.json": _QUESTION,
        "worktree.json": {"path": "/nowhere", "branch": "b", "repository": "/nowhere", "commonDir": "/nowhere/.git",
                          "base": "0" * 40, "spawner": STRANGER, "gitDir": "/nowhere/.git/worktrees/b", "cwd": "/",
                          "warnings": [], "changes": {"files": {}, "fileCount": 0, "leftOut": []}, "removed": {"at": _AT}},
    }  # fmt: skip
    texts = {
        "stdout.log": "hello\n", "stderr.log": "", "activity.jsonl": _lines(_ROW), "dialogue.jsonl": "",
        "interactions/q1.lock": "", "changes.patch": "", "children/build.q": "", "inbox/m1.json": '{"text": "x"}\n',
    }  # fmt: skip
    return {**texts, **{name: json.dumps(value) + "\n" for name, value in one_line.items()}}


def shipped() -> dict[str, str]:
    """Return the files of a repository that brings a task: path -> text."""
    ended = {
        "exit.json": _EXIT, "result.json": {"summary": "done", "artifacts": [], "at": _AT}, "cancel.json": {"by": "u"},
        "outcome.json": {"pid": 4243, "status": "completed", "reason": None, "message": None},
        "pause.json": {"by": "u"},
        "interactions/q1.answer.json": {"id": "q1", "answer": "yes", "by": "user", "at": _AT},
    }  # fmt: skip
    files = {
        "README.md": "# A project\n", "src/own.c": "int main(void) { return 0; }\n", "CLAUDE.md": "# Read me\n",
        ".mcp.json": '{"mcpServers": {}}\n', f"{ROOT}/current": "build\n", f"{ROOT}/root.lock": "",
        ".claude/settings.json": "{}\n",
        f"{ROOT}/agents/helper.md": "---\nname: helper\ndescription: helps\n---\nHelp.\n",
        ".claude/agents/aide.md": "---\nname: aide\ndescription: aids\n---\nAid.\n",
        ".codex/agents/assist.toml": 'name = "assist"\ndescription = "d"\ndeveloper_instructions = "Assist."\n',
        f"{ROOT}/templates/other/task.yaml": "name: other\ntitle: t\nroster: []\n",
        f"{TASK}/task.yaml": _HEAD + ROSTER, f"{TASK}/config.json": json.dumps(config()) + "\n",
        f"{TASK}/events.jsonl": _lines(*_EVENTS), f"{TASK}/queue.lock": "", f"{TASK}/task.lock": "",
        f"{TASK}/slots/1": json.dumps({"taskId": "build", "instance": "v", "shim": STRANGER}) + "\n",
        f"{TASK}/queue/4000.000000000001.a7b99eb414ae394d.w.build.q": '{"after": ["v"], "any": false}\n',
        f"{TASK}/cursors/default.json": '{"build": {"done": [], "claims": {}}}\n', f"{TASK}/observed.jsonl": "",
        f"{TASK}/keys/{'0' * 32}": json.dumps({"agentInstance": "w", "spawner": STRANGER}) + "\n",
        f"{TASK}/report.md": "# Report\n", f"{TASK}/report.json": "{}\n", f"{TASK}/origin": f"{ORIGIN}\n",
        f"{TASK}/shim.log": "", f"{TASK}/template/roster.json": '{"requests": []}\n',
        f"{TASK}/agents/q/spec.json": json.dumps(spec("q", ["make", "all"], after=["v"])) + "\n",
    }  # fmt: skip
    for instance in ("w", "v"):
        folder = f"{TASK}/agents/{instance}"
        files |= {f"{folder}/{name}": text for name, text in _worker_files().items()}
        files[f"{folder}/spec.json"] = json.dumps(spec(instance, ["make"])) + "\n"
    files |= {f"{TASK}/agents/w/{name}": json.dumps(value) + "\n" for name, value in ended.items()}
    return files


#: Where agentctl writes what a person does with their own tasks; what marks may not be there tells `World._marks`.
_OF_AGENTCTL = frozenset(
    {
        "home/.config/agentctl/own",
        "home/.config/agentctl/known.json",
        "home/.local/state/agentctl",
        "run/agentctl",
        "tmp/agentctl",
    }
)
_WITH_RULES = ("*/config.json", "*/task.yaml", "*/agents/*/spec.json")
#: Rules of a task that the person has vouched for nowhere.
ALLOWING = [{"tool": "*", "pattern": "*", "answer": "allow"}]
#: The one rule that every agent has.
_OURS = '{"tool": "mcp__agentctl__*", "pattern": "*", "answer": "allow"}'


def _allows(file: Path) -> bool:
    if file.is_symlink() or not file.is_file() or not os.access(file, os.R_OK):
        return False
    with file.open("rb") as opened:
        text = opened.read(100_000).decode(errors="replace").replace(_OURS, "")
    return any(rule in text for rule in ('"answer": "allow"', "permissions: allow", '"permissions": "allow"'))


class World:
    """The folders of one case."""

    def __init__(self, base: Path, canary: subprocess.Popen[bytes]) -> None:
        self.base, self.canary = base, canary
        self.clone, self.outside, self.home = base / _CLONE, base / "outside", base / "home"
        self.pwned = base / "PWNED"
        #: How each command line has ended, by its text.
        self.codes: dict[str, int] = {}
        #: What `allowing` found when the world was settled, or has been told of since.
        self.rules: set[str] = set()
        #: What `_marks` has found, by the folder of tasks.
        self._given: dict[str, list[bool]] = {}
        self._make()
        self._before = self._look()

    def _make(self) -> None:
        for name in ("outside/folder", "home/bin", "home/.config/agentctl", "home/.local/state", "run", "tmp"):
            (self.base / name).mkdir(mode=0o700, parents=True)
        (self.outside / "key").write_bytes(b"ssh-ed25519 AAAA me@here")  # Without a newline: nothing may cut it.
        (self.outside / "key").chmod(0o640)
        (self.outside / "folder" / "inner").write_bytes(b"mine\n")
        os.mkfifo(self.outside / "fifo", 0o600)
        for name in ("claude", "codex"):
            program = self.home / "bin" / name
            program.write_text("#!/bin/sh\nexit 3\n", encoding="ascii")
            program.chmod(0o755)
        for name, text in shipped().items():
            put(self.clone / name, text)
        shutil.copytree(_git_folder(), self.clone / ".git")

    @property
    def environ(self) -> dict[str, str]:
        """What a command of the person finds."""
        return {
            "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.base / "run"), "TMPDIR": str(self.base / "tmp"),
            "PATH": os.pathsep.join([str(self.home / "bin"), str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
            "LANG": "C.UTF-8", "SHELL": "/bin/sh",
        }  # fmt: skip

    def evil(self, name: str = "") -> str:
        """Return a program of the stranger's, as text: it says that it ran."""
        return f'#!/bin/sh\necho {name or "$0"} "$@" >> {self.pwned}\n'

    # -- what must stay as it is ---------------------------------------------------------------------------------------

    def changes(self) -> list[str]:
        """Tell what has changed of what is the person's, and mend it."""
        now, before = self._look(), self._before
        found = [
            f"{_kind(name, before, now)} {name}"
            for name in sorted({*now, *before})
            if now.get(name) != before.get(name)
        ]
        if self.pwned.exists():
            found.append(f"ran a program of the clone: {self.pwned.read_text(errors='replace').strip()[:200]}")
            self.pwned.unlink()
        self._before = now
        return found

    def settle(self) -> None:
        """Take what is there now for what it has to stay."""
        self._before = self._look()
        self.rules = self.allowing()

    def allowing(self) -> set[str]:
        """Return the files of tasks and of their workers in which a rule allows something."""
        tasks = self.clone / ROOT / "tasks"
        files = (file for pattern in _WITH_RULES for file in tasks.glob(pattern))
        return {str(file.relative_to(tasks)) for file in files if _allows(file)}

    def _look(self) -> dict[str, Any]:
        """Return what of the world is the person's: name -> what tells one state from another."""
        found = {}
        for top in ("outside", "home", "tmp", "run"):
            for folder, names, files in os.walk(self.base / top):
                names[:] = [name for name in names if self._is_watched(folder, name)]
                for name in (*names, *filter(partial(self._is_watched, folder), files)):
                    path = os.path.join(folder, name)
                    found[os.path.relpath(path, self.base)] = _state(path)
        for name in os.listdir(self.base):
            if name not in {"PWNED", "in", "out", "err", "record", "clone", "outside", "run", "home", "tmp"}:
                found[name] = "there"
        if (self.clone / "src").is_dir():
            for name in (
                "README.md",
                "src/own.c",
                *_names(self.clone),
                *(f"src/{n}" for n in _names(self.clone / "src")),
            ):
                place = self.clone / name
                found[f"clone/{name}"] = _state(place) if name.endswith((".md", ".c")) else "there"
        found["what the person has given their word for"] = self._marks()
        return found

    def _is_watched(self, folder: str, name: str) -> bool:
        return os.path.relpath(os.path.join(folder, name), self.base) not in _OF_AGENTCTL

    def _marks(self) -> dict[str, list[bool]]:
        """Tell whether the person has given their word for the clone's task, and for rules there that allow everything.

        They give it for the place that a path leads to, so it is told for each that this path has led to: for one that
        it does not lead to now, as it was when it did. One that leads in a circle leads to none.
        """
        folder, path = FilePath(str(self.home / ".config/agentctl/own")), str(self.clone / TASK)
        marks, tasks = (("task",), ("rules", stable_text(ALLOWING))), (TaskDir(path), _AsNoted(path, folder))
        if not _leads_in_a_circle(path):
            told = [any(origin.is_marked(folder, task, *mark) for task in tasks) for mark in marks]
            self._given[os.path.realpath(os.path.dirname(path))] = told
        return {place: given for place, given in self._given.items() if any(given)}


def _leads_in_a_circle(path: str) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


class _AsNoted(TaskDir):
    """A task with the random text that is noted for its place: `doctor --fix` puts it back into an odd `origin`."""

    def __init__(self, path: str, folder: FilePath) -> None:
        super().__init__(path)
        self._noted = origin.noted_at(folder, self)

    def nonce(self) -> str:
        return self._noted


def _names(folder: Path) -> list[str]:
    return os.listdir(folder)


def _kind(name: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    return "made" if name not in before else "removed" if name not in now else "changed"


def _state(path: str | Path) -> Any:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return "gone"
    if not stat.S_ISREG(info.st_mode):
        return (info.st_mode, info.st_ino)
    content = Path(path).read_bytes() if info.st_size < 10_000 else b""
    return (info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, content)


def put(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    """Write a file in the place of whatever is there, and the folders above it."""
    make_room(path)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
    path.chmod(mode)


def make_room(path: Path) -> None:
    """Remove whatever is there, and in a clone whatever stands in the place of the folders above it."""
    for above in reversed(path.parents):
        if _CLONE in above.parts and (above.is_symlink() or not above.is_dir()):
            clear(above)
    path.parent.mkdir(parents=True, exist_ok=True)
    clear(path)


def clear(path: Path) -> None:
    """Remove whatever is there."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


_GIT: list[Path] = []


def _git_folder() -> Path:
    """Return the `.git` of a repository without commits: made once by git, then copied."""
    if not _GIT:
        import atexit
        import tempfile

        place = Path(tempfile.mkdtemp(prefix="agentctl-tests-"))
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        environ = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(place)}
        quiet = ["git", "-c", "user.name=n", "-c", "user.email=n@x", "-c", "init.defaultBranch=main"]
        subprocess.run([*quiet, "init", "--quiet", "--template=", str(place)], check=True, env=environ)
        (place / "README.md").write_text("# A project\n")
        subprocess.run([*quiet, "-C", str(place), "add", "README.md"], check=True, env=environ)
        subprocess.run([*quiet, "-C", str(place), "commit", "--quiet", "-m", "first"], check=True, env=environ)
        _GIT.append(place / ".git")
    return _GIT[0]

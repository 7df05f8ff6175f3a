"""Provides temporary folders and tasks, runs and times programs in them, and leaves no file and no process behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentctl.adapters import processes
from agentctl.adapters.taskdir import Root, TaskDir
from bench.measuring import BenchError

REPOSITORY = Path(__file__).resolve().parent.parent
MEMORY = Path("/dev/shm")
PATIENCE_S = 120.0
_LOOK_S = 0.003
TYPER = f"{Path(sys.executable).name} -c 'import typer'"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A program that has ended with exit code 0."""

    began_ns: int
    ms: float
    out: str


class Ground:
    """Folders on disk and in memory, and how programs are run in them."""

    def __init__(self) -> None:
        self.disk = Path(tempfile.mkdtemp(prefix="agentctl-bench-")).resolve()
        self.memory = Path(tempfile.mkdtemp(prefix="agentctl-bench-", dir=MEMORY)) if MEMORY.is_dir() else None
        self.program = _program()
        self.environ = self._environment()
        self._folders = 0
        self._tasks: list[TaskDir] = []

    def _environment(self) -> dict[str, str]:
        """Return the environment for all programs: without agentctl's variables, and with bytecode caching as usual."""
        dropped = {"PYTHONDONTWRITEBYTECODE"}
        kept = {k: v for k, v in os.environ.items() if not k.startswith("AGENTCTL_") and k not in dropped}
        home, runtime = self.disk / "home", (self.memory or self.disk) / "run"
        for folder in (home, runtime):
            folder.mkdir(mode=0o700)
        own = {"HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "XDG_CONFIG_HOME": str(home / "config")}
        if "-m" in self.program:
            own["PYTHONPATH"] = str(REPOSITORY)
        return kept | own

    @property
    def memory_or_refuse(self) -> Path:
        """The folder in memory."""
        if self.memory is None:
            raise BenchError(f"there is no {MEMORY}")
        return self.memory

    def folder(self, below: Path | None = None) -> Path:
        """Return a new, empty folder."""
        self._folders += 1
        path = (below or self.disk) / str(self._folders)
        path.mkdir(mode=0o700)
        return path

    def timed(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        limit_s: float = PATIENCE_S,
    ) -> Ran:
        """Run a program to its end; raise `BenchError` if it fails."""
        environ = self.environ | dict(env or {})
        began_ns, began = time.time_ns(), time.perf_counter()
        done = subprocess.run(
            argv, cwd=cwd or self.disk, env=environ, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=limit_s, check=False,
        )  # fmt: skip
        ms = (time.perf_counter() - began) * 1000
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[-500:]
            raise BenchError(f"{' '.join(argv)[:200]}: exit code {done.returncode}: {said}")
        return Ran(began_ns=began_ns, ms=ms, out=done.stdout.decode(errors="replace"))

    @contextlib.contextmanager
    def started(self, argv: Sequence[str], *, stdout: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[bytes]]:
        """Start a program, and kill it at the end of the block if it has not ended by itself."""
        with subprocess.Popen(argv, env=self.environ, stdin=subprocess.DEVNULL, stdout=stdout) as process:
            try:
                yield process
            finally:
                process.kill()

    def agentctl(self, task: TaskDir, verb: str, *args: str) -> Ran:
        """Run `agentctl VERB --task ... ARGS` as a process of its own."""
        return self.timed(self.command(task, verb, *args))

    def command(self, task: TaskDir, verb: str, *args: str) -> list[str]:
        """Return the argv of an agentctl command."""
        return [*self.program, *verb.split(), "--root", str(task.root.path), "--task", task.id, *args]

    def import_typer(self) -> Ran:
        """Run what commands are compared with: the same interpreter, which imports typer and ends."""
        return self.timed([sys.executable, "-c", "import typer"])

    def task(self, cap: int, below: Path | None = None) -> TaskDir:
        """Make a task in a root of its own."""
        root = Root(str(self.folder(below) / ".agentctl"))
        task = root.task("bench")
        argv = [*self.program, "new", "bench", "--id", task.id, "--max-concurrent", str(cap), "--root", str(root.path)]
        self.timed(argv)
        self._tasks.append(task)
        return task

    # -- cleaning up -------------------------------------------------------------------------------------------

    def settle(self, task: TaskDir) -> None:
        """Wait until no shim of a task is left."""
        wait_until(lambda: not any(task.path in processes.command_line_of(pid) for pid in processes.all_pids()))

    def drop(self, task: TaskDir) -> None:
        """Cancel the live workers of a task.

        Its folder is removed at the very end: ext4 skips each inode that was freed a moment ago (fs/ext4/ialloc.c,
        recently_deleted), which would slow the next measurement down.
        """
        self.agentctl(task, "cancel", "--all", "--grace-seconds", "0.1")
        self.settle(task)
        self._tasks.remove(task)

    def running(self) -> list[int]:
        """Return the processes that name one of these folders on their command line or in their environment."""
        names = [str(path) for path in (self.disk, self.memory) if path is not None]
        return [pid for pid in processes.all_pids() if pid != os.getpid() and _mentions(pid, names)]

    def close(self) -> list[str]:
        """Cancel and remove everything; return the processes that had to be killed, of which there should be none."""
        for task in list(self._tasks):
            with contextlib.suppress(BenchError, subprocess.TimeoutExpired):
                self.drop(task)
        with contextlib.suppress(BenchError):
            wait_until(lambda: not self.running(), limit_s=5)
        left = [f"{pid} {' '.join(processes.command_line_of(pid))[:150]}" for pid in self._kill()]
        for path in (self.disk, self.memory):
            if path is not None:
                shutil.rmtree(path, ignore_errors=True)
        return left

    def _kill(self) -> Iterator[int]:
        for pid in self.running():
            identity = processes.identify(pid)
            if identity is not None:
                yield pid
                processes.signal_process(identity, signal.SIGKILL)


def _program() -> list[str]:
    """Return how agentctl is started: the installed program beside this interpreter, else this checkout."""
    installed = Path(sys.executable).with_name("agentctl")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "agentctl"]


def _mentions(pid: int, names: list[str]) -> bool:
    texts = [*processes.command_line_of(pid), *map(os.fsdecode, processes.environment_of(pid).values())]
    return any(name in text for text in texts for name in names)


def wait_until(is_so: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
    """Poll until `is_so()` is true; raise `BenchError` after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > deadline:
            raise BenchError(f"nothing happened within {limit_s:g} s")
        time.sleep(_LOOK_S)


def busy_percent(seconds: float = 0.5) -> float:
    """Return how busy the processors are while this process sleeps (proc_stat(5)); 0 if that cannot be read."""
    before = _ticks()
    time.sleep(seconds)
    total, idle = (now - then for now, then in zip(_ticks(), before, strict=True))
    return 100 * (total - idle) / total if total else 0


def _ticks() -> tuple[int, int]:
    """Return the clock ticks of all processors since boot: in all, and those spent idle or waiting for a disk."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = list(map(int, file.readline().split()[1:9]))
    except OSError:
        return 0, 0
    return sum(ticks), ticks[3] + ticks[4]

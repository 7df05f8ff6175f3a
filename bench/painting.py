"""Figure 34: the first rows of the page over 1,000 workers, beside the page of an older commit in the same browser."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

from agentctl.adapters.taskdir import TaskDir
from bench.filling import filled_task
from bench.ground import PATIENCE_S, REPOSITORY, Ground
from bench.measuring import BenchError, Found, Rounds, Row, Sample, Turn, alternate, ratio

WORKERS, GOAL = 1000, 0.8
#: The page before its lists drew only what is near, and before its files were sent once.
BASE = "7f882f5a"
_FIRST_ROWS = """
new MutationObserver((_, observer) => {
  if (!document.querySelector('[data-key], .group')) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.firstRows = performance.now(); }, 0));
}).observe(document, { childList: true, subtree: true });
"""


def measure_first_rows(ground: Ground, rounds: Rounds) -> Found:
    """Measure the time from the navigation to the first rows, of a new browser and of one that was there before."""
    try:
        from tests.page.install import browser
        from tests.page.visiting import running_browser
    except ImportError:
        return Found(missing=["34: a browser: `make test-page` fetches what drives one"])
    if browser() is None:
        return Found(missing=["34: Chromium: not found"])
    base = _sources_of(ground, BASE)
    if base is None:
        return Found(missing=[f"34: the commit {BASE}: not in this checkout"])
    tasks = filled_task(ground, WORKERS), filled_task(ground, WORKERS)
    with (
        running_browser() as running,
        _MeasuredPage(ground, tasks[0]) as now,
        _MeasuredPage(ground, tasks[1], base) as then,
    ):
        cold, cold_then = Sample(name="new browser"), Sample(name=f"the same at {BASE}")
        warm, warm_then = Sample(name="loaded again"), Sample(name=f"the same at {BASE}")
        turns = Turn(lambda: now.opened(running), cold, warm), Turn(lambda: then.opened(running), cold_then, warm_then)
        alternate(rounds.usual, *turns)
    for task in tasks:
        ground.drop(task)
    what = f"first rows of the page of {WORKERS:,} workers"
    rows: list[Row] = [
        ratio(34, f"{what}, {one.name}", one, other, GOAL) for one, other in ((cold, cold_then), (warm, warm_then))
    ]
    return Found(rows=rows)


def _sources_of(ground: Ground, commit: str) -> Path | None:
    """Return a folder with the package as it was at a commit; None if there is no such commit here."""
    argv = ["git", "-C", str(REPOSITORY), "archive", commit, "agentctl"]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=PATIENCE_S)
    if done.returncode != 0:
        return None
    folder = ground.folder()
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


class _MeasuredPage(contextlib.AbstractContextManager["_MeasuredPage"]):
    """A server, and how long its page takes in a browser."""

    def __init__(self, ground: Ground, task: TaskDir, sources: Path | None = None) -> None:
        more = {} if sources is None else {"PYTHONPATH": str(sources)}
        self._environ = ground.environ | more
        self._serve = [*ground.program, "serve", "--root", str(task.root.path)]
        self._ground = ground
        argv = [*self._serve, "--port", "0", "--json"]
        self._process = subprocess.Popen(
            argv, env=self._environ, cwd=ground.disk, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        if "url" not in json.loads(self._process.stdout.readline() or "{}"):
            raise BenchError("serve has not said where it is")

    def opened(self, running: Any) -> list[float]:
        """Open the page in a new context, then load it again; return how long each took, in ms."""
        link = self._ground.timed([*self._serve, "--link"], env=self._environ).out.split()[0]
        with contextlib.closing(running.new_context()) as context:
            context.add_init_script(_FIRST_ROWS)
            page = context.new_page()
            page.goto(link)
            first = _first_rows(page)
            page.reload()
            return [first, _first_rows(page)]

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _first_rows(page: Any) -> float:
    """Return when the first rows were drawn, in ms since the navigation began."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := page.evaluate("window.firstRows")) is None:
        if time.monotonic() > deadline:
            raise BenchError("the page has drawn no rows")
        page.wait_for_timeout(10)
    return float(found)

"""The clusters of the figures about nodes: one that only pretends, and a real Slurm with its nodes on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from bench.ground import Ground
from bench.measuring import BenchError
from bench.pretending import PretendedCluster

#: Seconds for which Slurm collects jobs before it schedules them, unless it is set up otherwise.
DEFAULT_DELAY_S = 3
#: Each has four processors, for as many workers.
_NODES = 4


def why_no_slurm() -> str | None:
    """Return why no real Slurm can be started here; None where one can."""
    try:
        from tests.slurm.install import why_not
    except ImportError:
        return "the tests that start one need pytest (make .venv/.dev)"
    return why_not()


@contextlib.contextmanager
def slurm(ground: Ground, delay_s: int) -> Iterator[None]:
    """Have a real Slurm with some nodes, which the programs of `ground` use meanwhile."""
    import pytest

    from tests.slurm.cluster import Cluster

    # Otherwise as Slurm is by itself: a node of a busy machine must not be taken for dead.
    settings = {"SchedulerParameters": f"batch_sched_delay={delay_s}"}
    try:
        made = Cluster(ground.folder(), nodes=_NODES, slurmd_timeout_s=300, message_timeout_s=10, settings=settings)
        with made as cluster, _environ(ground, cluster.environ):
            _configure(ground, "slurm", "pollSeconds: 1")
            yield
    except pytest.fail.Exception as error:
        raise BenchError(f"no Slurm could be started: {error}") from None


@contextlib.contextmanager
def pretended(ground: Ground) -> Iterator[PretendedCluster]:
    """Have a cluster that only pretends; its runner is `slurm` with the settings that it has by itself."""
    cluster = PretendedCluster(ground.folder())
    try:
        with _environ(ground, {"PATH": f"{cluster.bin}:{ground.environ['PATH']}"}):
            _configure(ground, "slurm", "pollSeconds: 15")
            yield cluster
    finally:
        cluster.close()


@contextlib.contextmanager
def loopback(ground: Ground) -> Iterator[None]:
    """Have workers placed on this machine."""
    _configure(ground, "loopback", "pollSeconds: 1")
    yield


@contextlib.contextmanager
def _environ(ground: Ground, own: dict[str, str]) -> Iterator[None]:
    before = dict(ground.environ)
    ground.environ.update(own)
    try:
        yield
    finally:
        ground.environ.clear()
        ground.environ.update(before)


def _configure(ground: Ground, runner: str, settings: str) -> None:
    path = Path(ground.environ["XDG_CONFIG_HOME"]) / "agentctl" / "config.yaml"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(f"runners: {{{runner}: {{{settings}}}}}\n", encoding="utf-8")
    os.chmod(path, 0o600)

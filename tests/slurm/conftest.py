"""A real Slurm for the tests in this folder; where none can run, they are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.placed import ask_engine
from tests.slurm.cluster import Cluster
from tests.slurm.install import why_not
from tests.slurm.on_nodes import POLL_S, SILENCE_S, nothing_is_left

HERE = Path(__file__).parent
TIMEOUT_S = 120
CLUSTERS = ("cluster", "partitionable", "patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests in this folder their time; skip them where no Slurm can run."""
    reason = why_not()
    for item in items:
        if HERE not in item.path.parents:
            continue
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=f"no real Slurm: {reason}"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of three nodes, which is as new for each test."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="session")
def partitionable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Another one, whose nodes can be cut off."""
    with Cluster(tmp_path_factory.mktemp("cluster"), netns=True) as made:
        yield made


@pytest.fixture(scope="session")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Another one, which does not take nodes for dead that are only busy: for many workers at once."""
    settings = {"BatchStartTimeout": "1"}  # A job that its node does not know is over that soon.
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(folder, slurmd_timeout_s=60, message_timeout_s=10, settings=settings) as made:
        yield made


@pytest.fixture(autouse=True)
def as_new(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undo what a test has done to a cluster, and end its jobs."""
    used = [request.getfixturevalue(name) for name in CLUSTERS if name in request.fixturenames]
    yield
    for made in used:
        made.restore()


@pytest.fixture
def nodes(cluster: Cluster, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The cluster, as agentctl uses it in this test; in the end nothing of a worker may be on it."""
    yield from use(cluster, monkeypatch)


@pytest.fixture
def parted(partitionable: Cluster, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The other one, whose nodes can be cut off."""
    yield from use(partitionable, monkeypatch)


@pytest.fixture
def many(patient: Cluster, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The one for many workers."""
    yield from use(patient, monkeypatch)


def use(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Let agentctl use a cluster."""
    for name, value in cluster.environ.items():
        monkeypatch.setenv(name, value)
    ask_engine("slurm", pollSeconds=POLL_S, silenceSeconds=SILENCE_S)
    yield cluster
    cluster.run("scancel", "--state=PENDING", "--user=root", check=False)
    nothing_is_left(cluster)

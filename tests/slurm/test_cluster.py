"""The clusters of the tests do what they are for, fail as they are told to, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.life import Known, lives, living
from tests.processes import connections_of
from tests.slurm import guard
from tests.slurm.cluster import IDLE_S, UP_S, Cluster
from tests.slurm.surroundings import tracks_cgroup
from tests.support import start_argv, wait_for_json, wait_until

#: A process in the job's session, and one that nothing but its namespace shows to be the job's.
WITH_DAEMON = "(cd /; setsid env -i /bin/sleep 300 </dev/null >/dev/null 2>&1 &); exec sleep 300"


def _runs_on(cluster: Cluster, node: str, *options: str, script: str = WITH_DAEMON, tasks: int = 2) -> str:
    job = cluster.submit(script, f"--nodelist={node}", "--no-requeue", *options)
    cluster.wait_for_job(job, "RUNNING")
    wait_until(
        lambda: cluster.programs(node),
        accept=lambda names: names == ["sleep"] * tasks,
        what="the job's processes",
    )
    return job


def _state(cluster: Cluster, job_id: str) -> str:
    job = cluster.job(job_id)
    return job.state if job else "unknown"


def _remains(folder: Path) -> list[str]:
    """Return what a cluster has left outside of its folder."""
    outside: dict[str, Any] = wait_for_json(folder / guard.OUTSIDE)
    places = [Path("/run/netns", name) for name in outside["netns"]]
    places += [Path("/sys/class/net", name) for name in outside["links"]]
    places += [Path(outside["freezer"])] if outside["freezer"] else []
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return [*(str(place) for place in places if place.exists()), *(line for line in mounts if str(folder) in line)]


def _everything(cluster: Cluster) -> list[Known]:
    daemons = [cluster.daemon(name) for name in ("munged", "slurmctld")]
    return daemons + [process for node in cluster.nodes for process in cluster.processes(node)]


def test_a_new_cluster_has_three_idle_nodes(cluster: Cluster) -> None:
    assert cluster.node_states() == {"n1": "idle", "n2": "idle", "n3": "idle"}


def test_its_daemons_listen_at_its_own_addresses(cluster: Cluster) -> None:
    daemons = [psutil.Process(cluster.daemon(name).pid) for name in ("slurmctld", *cluster.nodes)]
    listening = [one.laddr.ip for it in daemons for one in connections_of(it) if one.status == psutil.CONN_LISTEN]
    assert len(set(listening)) == 4
    assert all(address.startswith("127.213.") for address in listening), listening


def test_a_job_runs_on_the_node_that_it_names(cluster: Cluster) -> None:
    job = cluster.submit("hostname; echo $SLURMD_NODENAME", "--nodelist=n2")
    assert cluster.wait_for_job(job, "COMPLETED").node == "n2"
    assert (cluster.folder / f"job-{job}.out").read_text(encoding="utf-8") == "n2\nn2\n"


def test_the_controller_can_be_killed_and_started(cluster: Cluster) -> None:
    killed = cluster.daemon("slurmctld")
    cluster.stop_controller()
    assert not lives(killed)
    cluster.start_controller()
    cluster.wait_idle()


def test_a_job_outlives_an_orderly_restart_of_the_controller(cluster: Cluster) -> None:
    job = _runs_on(cluster, "n1")
    cluster.stop_controller(signal.SIGTERM)
    cluster.start_controller()
    assert _state(cluster, job) == "RUNNING"


def test_a_job_outlives_the_slurmd_of_its_node(cluster: Cluster) -> None:
    job = _runs_on(cluster, "n1")
    tasks = cluster.tasks("n1")
    cluster.stop_node("n1")
    assert living(tasks) == tasks
    cluster.start_node("n1")
    assert _state(cluster, job) == "RUNNING"


def test_all_on_a_lost_node_dies_and_nothing_on_others(cluster: Cluster) -> None:
    lost, kept = _runs_on(cluster, "n1"), _runs_on(cluster, "n2")
    processes = cluster.processes("n1")
    assert len(processes) == 4  # slurmd, the keeper of the job, its process and its daemon
    cluster.lose_node("n1")
    assert not living(processes)
    assert _state(cluster, lost) == "RUNNING"  # The controller does not know about it.
    cluster.mark_down("n1")
    assert _state(cluster, lost) == "NODE_FAIL"
    cluster.start_node("n1")
    assert _state(cluster, kept) == "RUNNING"
    assert len(cluster.tasks("n2")) == 2


def test_a_node_that_is_cut_off_is_held_for_dead_and_comes_back(partitionable: Cluster) -> None:
    job = _runs_on(partitionable, "n2")
    tasks = partitionable.tasks("n2")
    partitionable.partition("n2")
    partitionable.wait_for_job(job, "NODE_FAIL", timeout_s=60)
    assert partitionable.node_states() == {"n1": "idle", "n2": "down*", "n3": "idle"}
    assert living(tasks) == tasks
    partitionable.rejoin("n2")
    partitionable.wait_idle()
    wait_until(lambda: len(living(tasks)), accept=lambda number: number == 1, what="Slurm to end what it knows of")


def test_a_restored_cluster_has_no_job_and_no_dead_node(cluster: Cluster) -> None:
    job = _runs_on(cluster, "n1")
    cluster.lose_node("n2")
    cluster.mark_down("n2")
    cluster.stop_controller(signal.SIGTERM)
    cluster.restore()
    assert set(cluster.node_states().values()) == {"idle"}
    assert _state(cluster, job) == "CANCELLED"
    assert not [task for node in cluster.nodes for task in cluster.tasks(node)]


def test_a_restored_cluster_has_nobody_who_tells_the_end_of_a_job_that_the_controller_has_forgotten(
    cluster: Cluster,
) -> None:
    """The next job would get its number, and be held for ended."""
    job = _runs_on(cluster, "n1")
    (keeper,) = cluster.keepers("n1")
    os.kill(keeper.pid, signal.SIGSTOP)
    cluster.stop_controller()
    for file in (cluster.folder / "state").glob("job_state*"):
        file.unlink()
    cluster.start_controller()
    cluster.wait_idle()
    assert _state(cluster, job) == "unknown"
    assert str(keeper) in cluster.problem()
    cluster.restore()
    assert not lives(keeper)
    assert cluster.problem() == ""
    assert int(cluster.submit("true")) > int(job), "and no other job gets its number"


@pytest.mark.parametrize("netns", [False, True])
def test_nothing_is_left_of_a_cluster(tmp_path: Path, netns: bool) -> None:
    with Cluster(tmp_path / "c", netns=netns) as cluster:
        _runs_on(cluster, "n3")
        processes = _everything(cluster)
        assert len(processes) == 8
        assert _remains(cluster.folder)
    assert not living(processes)
    assert not _remains(cluster.folder)


def test_nothing_is_left_of_a_cluster_whose_maker_is_killed(tmp_path: Path) -> None:
    script = f"""
import json, pathlib, time
from tests.slurm.test_cluster import _everything, _runs_on
from tests.slurm.cluster import Cluster
cluster = Cluster(pathlib.Path({str(tmp_path)!r}) / "c", netns=True)
cluster.up()
_runs_on(cluster, "n3")
draft = pathlib.Path({str(tmp_path)!r}) / "draft"
draft.write_text(json.dumps(_everything(cluster)))
draft.rename(draft.with_name("processes"))
time.sleep(300)
"""
    maker = start_argv([sys.executable, "-c", script], env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    processes = [Known(*one) for one in wait_for_json(tmp_path / "processes", UP_S + IDLE_S)]
    assert living(processes) == processes
    maker.kill()
    wait_until(lambda: (living(processes), _remains(tmp_path / "c")), accept=lambda left: left == ([], []))


@pytest.mark.skipif(not tracks_cgroup(), reason="no control groups of version 1")
def test_control_groups_find_a_daemon_of_a_job(tmp_path: Path) -> None:
    with Cluster(tmp_path / "c", 1, tracking="cgroup") as cluster:
        job = _runs_on(cluster, "n1")
        tasks = cluster.tasks("n1")
        cluster.run("scancel", job)
        wait_until(lambda: living(tasks), accept=lambda left: not left, what="the daemon to end")
    assert not _remains(cluster.folder)

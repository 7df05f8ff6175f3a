"""Steps for tests of workers on the nodes of a Slurm: what Slurm says of a worker's job, and how full its nodes are."""

from __future__ import annotations

from typing import Any

from tests.life import living
from tests.placed import launch_of, placement
from tests.slurm.cluster import Cluster, Job
from tests.steps import Task
from tests.support import wait_until

SLURM = ("--runner", "slurm")
#: How Slurm is asked in most tests. A node gives a sign of life every ten seconds.
POLL_S, SILENCE_S = 1, 3


def on(node: str) -> tuple[str, ...]:
    """Return the options that place a worker on one node, as a person may."""
    return (*SLURM, f"--runner-arg=--nodelist={node}")


def jobs_of(cluster: Cluster, task: Task, instance: str) -> list[Job]:
    """Return what Slurm knows of a worker's launch."""
    name = f"agentctl-{launch_of(task, instance).name}"
    return [job for job in cluster.jobs() if job.name == name]


def job_of(cluster: Cluster, task: Task, instance: str, *states: str, timeout_s: float = 30) -> Job:
    """Wait until a worker has one job, in one of these states; return it."""
    (job,) = wait_until(
        lambda: jobs_of(cluster, task, instance),
        timeout_s,
        what=f"the job of {instance} to be {' or '.join(states)}",
        accept=lambda jobs: [job.state in states for job in jobs] == [True],
    )
    return job


def says(instance: str, timeout_s: float = 30, **wanted: str | None) -> dict[str, Any]:
    """Wait until `list` says this of a worker's place on a node; return all that it says of it."""
    return wait_until(
        lambda: placement(instance),
        timeout_s,
        what=f"{instance} to be shown with {wanted}",
        accept=lambda told: wanted.items() <= told.items(),
    )


def fill(cluster: Cluster) -> str:
    """Let a job of somebody else have all nodes; return its id."""
    job = cluster.submit("exec sleep 300", f"--nodes={len(cluster.nodes)}", "--exclusive")
    cluster.wait_for_job(job, "RUNNING")
    return job


def nothing_is_left(cluster: Cluster, timeout_s: float = 20) -> None:
    """Wait until no process of a worker, of its shim or of its post is on any node."""
    wait_until(
        lambda: living([task for node in cluster.nodes for task in cluster.tasks(node)]),
        timeout_s,
        what="nothing to be left on the nodes",
        accept=lambda left: not left,
    )

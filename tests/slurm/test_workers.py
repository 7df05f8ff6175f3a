"""At stake: a worker on a node of a real Slurm is in every respect a worker: its end, its questions, its cancel."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.life import is_settled, living, members, passes
from tests.placed import handle_of, launch_of, placement, post_of, script, there
from tests.repositories import git, new_repository
from tests.slurm.cluster import Cluster
from tests.slurm.conftest import use
from tests.slurm.on_nodes import SLURM, fill, job_of, jobs_of, nothing_is_left, on
from tests.slurm.surroundings import tracks_cgroup
from tests.snapshots import files_with
from tests.steps import Task, new_task, spawn, statuses
from tests.support import PROGRAM, run, start, text_in, wait_for_text, wait_until, worker

AGENTCTL = " ".join(PROGRAM)


# -- what any worker does ----------------------------------------------------------------------------------------------


def test_its_end_its_output_and_its_reports_are_those_of_any_worker(nodes: Cluster) -> None:
    task = new_task()
    lines = f"echo out; echo err >&2; {AGENTCTL} report progress 40 half; {AGENTCTL} report result --summary ok; exit 3"
    told = spawn(script(lines), *on("n2"), name="a").json
    assert (told["status"], told["pid"]) == ("queued", None)
    assert run("wait", "a", check=False).code == 7
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"], ended["exitCode"]) == ("failed", "exit_code", 3)
    assert run("logs", "a").out == "out\nerr\n"
    assert json.loads((task.agent("a") / "progress.json").read_bytes())["text"] == "half"
    assert run("result", "a", "--json", check=False).json["summary"] == "ok"
    kinds = [event["type"] for event in task.events(of="a")]
    assert kinds == ["agent.queued", "agent.started", "agent.placed", "result.declared", "agent.failed"]
    assert (placement("a")["runner"], placement("a")["node"]) == ("slurm", "n2")


def test_it_sees_the_variables_of_its_job_and_the_resources_that_were_asked_for(nodes: Cluster) -> None:
    task = new_task()
    shows = "echo $SLURM_JOB_NAME $SLURMD_NODENAME $SLURM_CPUS_PER_TASK $SLURM_MEM_PER_NODE $SLURM_JOB_PARTITION $MINE"
    asked = ("--cpus", "2", "--memory", "200M", "--partition", "main")
    run("spawn", *on("n3"), *asked, "--name", "a", "--", *script(shows), env={"MINE": "my own"})
    run("wait", "a")
    assert run("logs", "a").out == f"agentctl-{launch_of(task, 'a').name} n3 2 200 main my own\n"


@pytest.mark.timeout(180)
def test_the_devices_that_slurm_gives_it_are_named_to_it(
    tmp_path_factory: pytest.TempPathFactory, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tmp_path / "names"  # As the programs of a site do; the devices of these nodes are plain files.
    names.write_text("#!/bin/sh\necho export CUDA_VISIBLE_DEVICES=0,1\n", encoding="utf-8")
    names.chmod(0o755)
    with Cluster(tmp_path_factory.mktemp("cluster"), 1, gpus=2, settings={"TaskProlog": str(names)}) as cluster:
        for _ in use(cluster, monkeypatch):
            new_task()
            spawn(script("echo $SLURM_GPUS_ON_NODE: $CUDA_VISIBLE_DEVICES"), *SLURM, "--gpus", "2", name="a")
            run("wait", "a")
            assert run("logs", "a").out == "2: 0,1\n"


def test_its_question_is_answered_at_the_head(nodes: Cluster) -> None:
    new_task()
    spawn(worker("asks", "--kind", "confirm", "Go on?"), *SLURM, name="a")
    assert run("wait-any", "--json").json["status"] == "blocked"
    (question,) = run("interact", "list", "--json").json
    assert (question["question"], question["waiting"]) == ("Go on?", True)
    run("interact", "respond", "a", "--id", "q1", "yes")
    run("wait", "a")
    assert "answer: yes" in run("logs", "a").out


def test_messages_reach_it_in_their_order(nodes: Cluster) -> None:
    new_task()
    spawn(script(f"for n in 1 2; do {AGENTCTL} inbox --wait; done"), *SLURM, name="a")
    for text in ("one", "two"):
        run("send", "a", text)
    run("wait", "a")
    assert [line.split()[-1] for line in run("logs", "a").out.splitlines()] == ["one", "two"]


def test_what_it_commits_in_its_worktree_is_on_its_branch_at_the_head(nodes: Cluster, tmp_path: Path) -> None:
    new_task()
    repository = new_repository(tmp_path / "repository")
    commits = "echo from $SLURMD_NODENAME > new.txt; git add new.txt; git commit --quiet --message=new"
    spawn(script(commits), *on("n1"), "--worktree", "--cwd", repository, name="a")
    run("wait", "a")
    branch = run("show", "a", "--json").json["worktree"]["branch"]
    assert git(repository, "show", f"{branch}:new.txt") == "from n1\n"


def test_a_parent_that_fills_its_node_has_its_child_on_another_one(nodes: Cluster) -> None:
    task = new_task(depth=2)
    nests = f"{AGENTCTL} spawn --name kid -- sh -c 'echo on $SLURMD_NODENAME' && {AGENTCTL} wait kid"
    spawn(script(nests), *on("n1"), "--cpus", "4", name="a")
    run("wait", "a")
    found = {name: placement(name)["node"] for name in ("a", "kid")}
    assert found["a"] == "n1"
    assert found["kid"] in {"n2", "n3"}
    assert run("logs", "kid").out == f"on {found['kid']}\n"
    assert {one["agentInstance"]: one["parent"] for one in run("list", "--json").json} == {"a": None, "kid": "a"}
    assert task.tickets() == []


def test_a_nested_worker_may_pass_no_options_to_slurm(nodes: Cluster) -> None:
    new_task(depth=2)
    spawn(script(f"{AGENTCTL} spawn --runner-arg=--uid=0 -- true"), *SLURM, name="a")
    assert run("wait", "a", check=False).code == 7
    assert "only a person may pass options to the engine" in run("logs", "a").out


def test_no_secret_is_in_the_state_of_the_controller_or_shown_by_it(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    secret = "s3cr3t-of-the-person"
    asks = f'test -n "$KEY" && touch {tmp_path}/had; {AGENTCTL} inbox --wait'
    run("spawn", *SLURM, "--name", "a", "--", *script(asks), env={"KEY": secret})
    wait_until((tmp_path / "had").exists, what="the worker to look at its environment")
    job = job_of(nodes, task, "a", "RUNNING")
    shown = (
        nodes.run("scontrol", "show", "job", job.id).out
        + nodes.run("scontrol", "write", "batch_script", job.id, "-").out
    )
    assert secret not in shown
    nodes.run("scontrol", "reconfigure")  # It writes its state now.
    assert len(files_with(nodes.folder / "state", "")) > 1
    assert files_with(nodes.folder / "state", secret) == []
    run("send", "a", "go on")
    run("wait", "a")


# -- its cancel --------------------------------------------------------------------------------------------------------


def cancels_stubborn(cluster: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *SLURM, "--grace-seconds", "0.2", name="a")
    tree = members(tmp_path / "pids")
    post = post_of(task, "a")
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert living(tree.values()) == [], "it is told once nothing of it is alive"
    wait_until(lambda: living([post]), accept=lambda left: not left, what="its post to leave")
    assert is_settled(task, "a")["status"] == "cancelled"
    nothing_is_left(cluster)


def test_a_cancel_is_told_when_nothing_of_a_stubborn_tree_is_alive(nodes: Cluster, tmp_path: Path) -> None:
    cancels_stubborn(nodes, tmp_path)


@pytest.mark.skipif(not tracks_cgroup(), reason="no control groups of version 1")
def test_so_it_is_where_slurm_tracks_control_groups(
    tmp_path_factory: pytest.TempPathFactory, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(tmp_path_factory.mktemp("cluster"), 1, tracking="cgroup") as cluster:
        for _ in use(cluster, monkeypatch):
            cancels_stubborn(cluster, tmp_path)


def test_a_daemon_that_it_leaves_is_gone_when_its_end_is_told(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("leaves_daemon", tmp_path / "pids", "--stubborn"), *SLURM, name="a")
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"
    assert [
        name for name, pid in json.loads((tmp_path / "pids").read_bytes()).items() if Path(f"/proc/{pid}").exists()
    ] == []


def test_a_cancel_takes_it_out_of_the_queue_of_slurm(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    blocker = fill(nodes)
    spawn(script(f"touch {tmp_path}/ran"), *SLURM, name="a")
    job_of(nodes, task, "a", "PENDING")
    assert run("cancel", "a", "--json").json["cancelled"] is True
    ended = is_settled(task, "a")
    assert (ended["status"], ended["message"]) == ("cancelled", "it was waiting in the queue of slurm")
    job_of(nodes, task, "a", "CANCELLED")
    assert not (tmp_path / "ran").exists()
    nodes.run("scancel", blocker)


#: What has just come to be when it is cancelled.
STAGES: dict[str, Callable[[Task, str], bool]] = {
    "its folder": lambda task, name: task.agent(name).exists(),
    "its launch": lambda task, name: (task.agent(name) / "launch.json").exists(),
    "its job": lambda task, name: "job" in handle_of(task, name),
    "its claim": lambda task, name: (launch_of(task, name) / "claim.json").exists(),
    "its folder there": lambda task, name: there(task, name).exists(),
    "its shim there": lambda task, name: (there(task, name) / "shim.json").exists(),
    "its process": lambda task, name: (there(task, name) / "worker.json").exists(),
    "its first line": lambda task, name: (there(task, name) / "stdout.log").exists(),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_cancel_that_races_its_start_leaves_nothing_of_it(nodes: Cluster, stage: str) -> None:
    task = new_task()
    for name in ("a", "b"):
        spawn(script("echo begun; exec sleep 60"), *SLURM, name=name)
        wait_until(lambda name=name: STAGES[stage](task, name), what=stage)  # type: ignore[misc]
        assert run("cancel", name, "--json").json["cancelled"] is True
        assert is_settled(task, name)["status"] == "cancelled"
    nothing_is_left(nodes)
    wait_until(lambda: nodes.run("squeue", "--noheader").out, accept=lambda left: not left, what="no job to be left")


def test_two_cancels_at_once_are_both_told_the_truth_and_so_is_one_after_its_end(nodes: Cluster) -> None:
    task = new_task()
    spawn(worker("sleeps", 60), *SLURM, name="a")
    task.has("agent.placed", "a")
    both = [start("cancel", "a", "--json") for _ in range(2)]
    told = [json.loads(one.communicate()[0]) for one in both]
    assert {one["status"] for one in told} == {"cancelled"}
    assert [one.returncode for one in both] == [0, 0]
    assert is_settled(task, "a")["status"] == "cancelled"
    again = run("cancel", "a", "--json")
    assert again.json["status"] == "cancelled"
    assert len(task.events("agent.cancelled")) == 1


def test_a_cancel_after_it_has_completed_changes_nothing(nodes: Cluster) -> None:
    task = new_task()
    spawn(["true"], *SLURM, name="a")
    run("wait", "a")
    assert run("cancel", "a", "--json", check=False).json["cancelled"] is False
    assert is_settled(task, "a")["status"] == "completed"


def test_a_cancel_hits_no_other_job_whose_number_was_its_own(nodes: Cluster) -> None:
    """A controller that has lost its state gives the same numbers out again."""
    task = new_task()
    spawn(worker("sleeps", 60), *SLURM, name="a")
    task.has("agent.placed", "a")
    other = nodes.submit("exec sleep 300")
    nodes.wait_for_job(other, "RUNNING")
    file = launch_of(task, "a") / "handle.json"
    file.write_text(json.dumps({**handle_of(task, "a"), "job": other}), encoding="utf-8")
    run("cancel", "a")
    assert is_settled(task, "a")["status"] == "cancelled"
    assert nodes.wait_for_job(other, "RUNNING").state == "RUNNING"
    nodes.run("scancel", other)


# -- what slurm does with it -------------------------------------------------------------------------------------------


@pytest.mark.timeout(180)
def test_its_time_on_the_node_ends_it_by_the_same_escalation(nodes: Cluster) -> None:
    """Slurm counts in minutes: it tells a job of one minute about its end when half of it is over."""
    task = new_task()
    spawn(worker("sleeps", 100), *SLURM, "--time", "1m", name="a")
    assert run("wait", "a", check=False, timeout=90).code == 7
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "timed_out")
    assert "its time on the node (60 s) was over" in ended["message"]


@pytest.mark.parametrize(
    ("options", "says_why"),
    [(("--partition", "nope"), "invalid partition specified: nope"), (("--gpus", "1"), "Invalid generic resource")],
)
def test_what_slurm_refuses_has_failed_for_the_reason_that_slurm_gives(
    nodes: Cluster, options: tuple[str, ...], says_why: str
) -> None:
    task = new_task()
    spawn(["true"], *SLURM, *options, name="a")
    assert run("wait", "a", check=False).code == 7
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert "Slurm refuses it" in ended["message"]
    assert says_why in ended["message"]
    assert jobs_of(nodes, task, "a") == []


def never(cluster: Cluster, reason: str) -> str:
    """Return the option of sbatch with which a job waits for ever, for this reason."""
    if reason == "PartitionConfig":
        return "--cpus-per-task=64"
    if reason == "ReqNodeNotAvail":
        cluster.run("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
        return "--nodelist=n3"
    failed = cluster.submit("exit 1")
    cluster.wait_for_job(failed, "FAILED")
    return f"--dependency=afterok:{failed}"


@pytest.mark.parametrize("reason", ["ReqNodeNotAvail", "DependencyNeverSatisfied", "PartitionConfig"])
def test_one_that_waits_for_ever_is_shown_with_its_reason_and_cancelled(nodes: Cluster, reason: str) -> None:
    task = new_task()
    spawn(["true"], *SLURM, f"--runner-arg={never(nodes, reason)}", name="a")
    told = wait_until(lambda: placement("a"), accept=lambda told: reason in (told["reason"] or ""), what="the reason")
    assert (told["state"], told["words"], told["node"]) == ("queued", "PENDING", None)
    why = run("why", "a").out
    assert "It waits in the queue of slurm" in why
    assert reason in why
    run("cancel", "a")
    assert is_settled(task, "a")["status"] == "cancelled"
    job_of(nodes, task, "a", "CANCELLED")


def test_a_cancel_in_slurm_of_a_stubborn_tree_is_told_as_one_of_slurm(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("stubborn", tmp_path / "pids"), *SLURM, "--grace-seconds", "0.2", name="a")
    tree = members(tmp_path / "pids")
    nodes.run("scancel", job_of(nodes, task, "a", "RUNNING").id)
    task.ended("a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["by"]) == ("cancelled", "slurm")
    assert living(tree.values()) == []


@pytest.mark.parametrize("stage", list(STAGES)[2:])
def test_a_cancel_in_slurm_that_races_its_start_is_told_as_one_of_slurm(nodes: Cluster, stage: str) -> None:
    """Slurm's signal reaches all processes of a job, also those that are about to start the worker."""
    task = new_task()
    spawn(script("exec sleep 60"), *SLURM, name="a")
    wait_until(lambda: STAGES[stage](task, "a"), what=stage)
    nodes.run("scancel", f"--name=agentctl-{launch_of(task, 'a').name}")
    task.ended("a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["by"]) == ("cancelled", "slurm")


def test_one_that_dies_of_the_signal_of_slurm_was_cancelled_there_too(nodes: Cluster) -> None:
    """Slurm sends SIGTERM to all processes of a job at once."""
    task = new_task()
    spawn(script("trap 'exit 9' TERM; while :; do sleep 0.01; done"), *SLURM, name="a")
    task.has("agent.placed", "a")
    nodes.run("scancel", job_of(nodes, task, "a", "RUNNING").id)
    task.ended("a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["by"], ended["message"]) == (
        "cancelled",
        "slurm",
        "it was cancelled in slurm, not here",
    )


def test_a_cancel_in_the_queue_of_slurm_is_told_as_one_of_slurm(nodes: Cluster) -> None:
    task = new_task()
    blocker = fill(nodes)
    spawn(["true"], *SLURM, name="a")
    nodes.run("scancel", job_of(nodes, task, "a", "PENDING").id)
    task.ended("a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["by"]) == ("cancelled", "slurm")
    nodes.run("scancel", blocker)


def test_a_second_start_of_one_launch_is_refused_by_the_claim(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(script(f"echo x >> {tmp_path}/runs; {AGENTCTL} inbox --wait"), *SLURM, name="a")
    wait_for_text(tmp_path / "runs")
    job = job_of(nodes, task, "a", "RUNNING")
    text = nodes.run("scontrol", "write", "batch_script", job.id, "-").out
    copy = nodes.run("sbatch", "--parsable", "--export=NIL", f"--output={tmp_path}/copy", stdin=text).out.strip()
    assert nodes.wait_for_job(copy, "FAILED").state == "FAILED"
    assert exit_code(nodes, copy) == "75:0"
    assert "is carried out elsewhere already" in (tmp_path / "copy").read_text()
    run("send", "a", "go on")
    run("wait", "a")
    assert text_in(tmp_path / "runs") == "x\n"


def exit_code(cluster: Cluster, job_id: str) -> str:
    found = re.search(r" ExitCode=(\S+)", cluster.run("scontrol", "--oneliner", "show", "job", job_id).out)
    assert found is not None
    return found[1]


@pytest.mark.timeout(240)
def test_a_requeue_that_is_forced_ends_it_and_the_second_copy_is_refused(nodes: Cluster, tmp_path: Path) -> None:
    task = new_task()
    spawn(script(f"echo x >> {tmp_path}/runs; exec sleep 100"), *SLURM, name="a")
    wait_for_text(tmp_path / "runs")
    job = job_of(nodes, task, "a", "RUNNING").id
    nodes.run("scontrol", "update", f"jobid={job}", "requeue=1")
    nodes.run("scontrol", "requeue", job)
    task.ended("a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["by"]) == ("cancelled", "slurm")
    passes(2.0)  # In the second in which a job was killed, its node starts no copy of it: the credential is revoked.
    wait_until(
        lambda: starts_now(nodes, job), 90, what="the second copy to be refused", accept=lambda told: "75:0" in told
    )
    assert text_in(tmp_path / "runs") == "x\n"
    assert statuses() == {"a": "cancelled"}


def starts_now(cluster: Cluster, job_id: str) -> str:
    """Have a job that was queued again start at once; return its state and its exit code."""
    job = cluster.job(job_id)
    if job is not None and job.state == "PENDING":
        cluster.run("scontrol", "update", f"jobid={job_id}", "starttime=now", check=False)
    return f"{job} {exit_code(cluster, job_id)}"

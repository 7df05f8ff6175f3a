"""At stake: whatever Slurm's commands do (hang, print garbage, fail after they worked), nothing is lost or doubled.

The commands are scripts that come first on PATH; no Slurm is needed.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.placement import Placement
from agentctl.domain.worker.sightings import EngineState, LaunchFinding, Sighting, Watched, looked
from agentctl.errors import Refused, UsageError
from agentctl.runners import slurm
from agentctl.runners.runner import EngineDown, LaunchOrder, Rejected
from agentctl.runners.slurm import RUNNER, sbatch_options, seen_in
from tests.advice import follow
from tests.life import is_settled, passes
from tests.placed import ask_engine, launch_of, placement, script
from tests.steps import Task, new_task, row, spawn, statuses
from tests.support import run, wait_for_text, wait_until

ID = "0123456789abcdef"
OTHER = "fedcba9876543210"


@pytest.fixture
def programs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that comes first on PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    ask_engine("slurm", pollSeconds=0.5, silenceSeconds=1)
    return folder


def fake(folder: Path, name: str, lines: str) -> None:
    """Make a command that is a shell script; it replaces the one before as a whole."""
    draft = folder / f".{name}"
    draft.write_text(f"#!/bin/sh\n{textwrap.dedent(lines)}\n", encoding="utf-8")
    draft.chmod(0o755)
    draft.rename(folder / name)


def order(**asked: object) -> LaunchOrder:
    """Return a launch that asks for this."""
    placed = Placement("slurm", **asked)  # type: ignore[arg-type]
    return LaunchOrder(ID, ["/a program", "--post", "/fol'der"], "/log/100%.log", "t1/a", placed)


# -- one command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sbatch", lambda: RUNNER.launch(order())),
        ("squeue", RUNNER.poll),
        ("scancel", lambda: RUNNER.interrupt(ID)),
        ("scancel", lambda: RUNNER.kill(ID)),
    ],
)
def test_a_command_that_hangs_is_given_up_and_nothing_is_known(
    programs: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: Callable[[], object]
) -> None:
    monkeypatch.setattr(slurm, "_LIMIT_S", 0.3)
    fake(programs, name, "exec sleep 60")
    with pytest.raises(EngineDown, match=rf"{name} has not answered within 0.3 s"):
        call()


def test_a_launch_is_submitted_from_a_folder_with_any_name(programs: Path, tmp_path: Path) -> None:
    fake(programs, "sbatch", f"cat >{shlex.quote(str(tmp_path / 'submitted'))}; echo 7")
    folder = os.fsdecode(b"/caf\xe9 %j")
    RUNNER.launch(LaunchOrder(ID, ["/a program", "--post", folder], f"{folder}/log", "t1/a", Placement("slurm")))
    assert b"/caf\xe9 %j" in (tmp_path / "submitted").read_bytes()


def test_a_command_that_is_missing_is_told_before_anything_is_made(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    for name in ("sbatch", "squeue"):
        fake(programs, name, "")
    with pytest.raises(Refused, match="scancel is not in PATH"):
        RUNNER.check(Placement("slurm"))
    with pytest.raises(EngineDown, match="scancel could not be run"):
        RUNNER.kill(ID)


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: Munge decode failed: Failed to connect",
        "sbatch: error: QOSMaxSubmitJobPerUserLimit",
        "sbatch: error: slurm_msg_sendto: address:port=10.0.0.1:6817 msg_type=4003: Unexpected missing socket error",
        "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
        "",
    ],
)
def test_a_submission_of_which_nobody_knows_whether_it_came_through_may_be_said_again(
    programs: Path, said: str
) -> None:
    fake(programs, "sbatch", f"echo {shlex.quote(said)} >&2; exit 1")
    with pytest.raises(EngineDown):
        RUNNER.launch(order())


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid",
            "Slurm refuses it: invalid partition specified: nope; Batch job submission failed: Invalid",
        ),
        (
            "sbatch: error: QOSMinGRES\nsbatch: error: QOSMinGRES",
            "Slurm refuses it: QOSMinGRES",
        ),
    ],
)
def test_a_refusal_is_told_plainly_and_is_final(programs: Path, said: str, told: str) -> None:
    fake(programs, "sbatch", f"echo {shlex.quote(said)} >&2; exit 1")
    with pytest.raises(Rejected) as refused:
        RUNNER.launch(order())
    assert refused.value.message == told


def test_it_is_submitted_by_name_without_environment_and_without_a_second_try(programs: Path, tmp_path: Path) -> None:
    fake(
        programs,
        "sbatch",
        f'for one; do echo "$one"; done > {tmp_path}/args; cat > {tmp_path}/stdin; echo "42;cluster"',
    )
    assert RUNNER.launch(order(cpus=2, gpus="a100:1", partition="short", args=["--account=lab"])) == "42"
    args = (tmp_path / "args").read_text().splitlines()
    assert {"--no-requeue", "--export=NIL", f"--job-name=agentctl-{ID}", "--output=/log/100%%.log"} <= set(args)
    assert {"--cpus-per-task=2", "--gpus=a100:1", "--partition=short"} <= set(args)
    assert args[-1] == "--account=lab", "a person's own options come last"
    assert (tmp_path / "stdin").read_text() == "#!/bin/sh\nexec '/a program' --post '/fol'\"'\"'der'\n"


@pytest.mark.parametrize(
    ("time_s", "minutes", "notice_s"), [(1, 1, 5), (60, 1, 5), (61, 2, 30), (300, 5, 120), (86_400, 1440, 120)]
)
def test_a_short_job_has_something_of_its_time_before_slurm_tells_it_of_its_end(
    time_s: int, minutes: int, notice_s: int
) -> None:
    """Slurm sends the signal up to a minute early."""
    options = sbatch_options(order(time_s=time_s))
    assert f"--time={minutes}" in options
    assert f"--signal=B:INT@{notice_s}" in options


@pytest.mark.parametrize(
    "ours",
    [
        *("--export=ALL", "--requeue", "-Jx", "-J", "--wrap=rm", "--array=1-9", "--job-name=x"),
        *("--exp=ALL", "--out=/x", "--wra=rm", "--req", "--get", "--chd=/x", "--test", "--vers", "-o/x", "-D", "-h"),
        *("-Ho/x", "-HW", "-QD/x", "-vJx", "--", "-", "---export=ALL", "--=x", "-\xadx", "x"),
    ],
)
def test_what_agentctl_says_itself_cannot_be_said_by_a_person(programs: Path, ours: str) -> None:
    """Sbatch completes what is cut short, and reads several short options from one word."""
    for name in ("sbatch", "squeue", "scancel"):
        fake(programs, name, "")
    with pytest.raises(UsageError, match=r"agentctl says|must be an option|each --runner-arg is one option"):
        RUNNER.check(Placement("slurm", args=[ours]))


def test_what_sbatch_alone_knows_may_be_said(programs: Path) -> None:
    for name in ("sbatch", "squeue", "scancel"):
        fake(programs, name, "")
    args = ["--account=lab", "-Alab", "-A", "-H", "--nodelist=n1", "-wn1", "--exclusive", "--ntasks-per-node=1", "-t5"]
    RUNNER.check(Placement("slurm", args=[*args, "--wait-all-nodes=1", "--qos", "--no-kill", "--export-x"]))


def test_defaults_of_a_person_hide_no_job_and_change_none(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SQUEUE_PARTITION", "SCANCEL_INTERACTIVE", "SBATCH_ARRAY_INX", "SBATCH_EXPORT", "SBATCH_ACCOUNT"):
        monkeypatch.setenv(name, "1")
    for name in ("sbatch", "squeue", "scancel"):
        fake(programs, name, f"env > {tmp_path}/{name}")
    RUNNER.launch(order())
    RUNNER.poll()
    RUNNER.kill(ID)
    for name in ("sbatch", "squeue", "scancel"):
        lines = (tmp_path / name).read_text().splitlines()
        found = [line for line in lines if line.startswith(("SBATCH_", "SQUEUE_", "SCANCEL_"))]
        assert found == ["SBATCH_ACCOUNT=1"], "what a person's account is remains theirs to say"


def test_a_cancel_of_a_job_that_is_over_is_no_error_and_one_that_reaches_nobody_is(programs: Path) -> None:
    fake(programs, "scancel", "echo 'scancel: error: Kill job error on job id 7: Invalid job id specified' >&2; exit 1")
    RUNNER.interrupt(ID)
    for said in ("Unable to contact slurm controller", "Kill job error on job id 7: Unspecified error"):
        fake(programs, "scancel", f"echo 'scancel: error: {said}' >&2; exit 1")
        with pytest.raises(EngineDown, match=said):
            RUNNER.interrupt(ID)


# -- what squeue prints ------------------------------------------------------------------------------------------------


def test_a_node_whose_name_has_the_separator_in_it_hides_nothing() -> None:
    found = seen_in(f"agentctl-{ID}|7|RUNNING|a|b[1-2]|None\nagentctl-{OTHER}|8|PENDING||Resources\n")
    assert found[ID] == Sighting(EngineState.RUNNING, "RUNNING", "a|b[1-2]", "", "7")
    assert found[OTHER].state is EngineState.QUEUED


@pytest.mark.parametrize(
    "line",
    [
        "",
        "garbage",
        f"agentctl-{ID}",
        f"agentctl-{ID}|7|RUNNING",
        f"agentctl-{ID}|7|RUNNING|n1",
        f"agentctl-{ID[:-1]}|7|RUNNING|n1|None",
        f"xagentctl-{ID}|7|RUNNING|n1|None",
        "slurm_load_jobs error: Unable to contact slurm controller",
        "\x00\x1b[31m|||||",
    ],
)
def test_a_line_that_is_none_of_ours_or_is_cut_says_nothing(line: str) -> None:
    assert seen_in(line) == {}


def test_a_word_that_nobody_knows_proves_nothing() -> None:
    assert seen_in(f"agentctl-{ID}|7|BEWITCHED|n1|None")[ID].state is EngineState.UNKNOWN


LINES = st.lists(
    st.sampled_from(["COMPLETED", "FAILED", "NODE_FAIL", "RUNNING", "PENDING", "BEWITCHED"]), min_size=1, max_size=6
)


@given(LINES)
def test_a_launch_is_over_only_if_all_its_jobs_are_and_dropped_only_if_all_were(words: list[str]) -> None:
    found = seen_in("\n".join(f"agentctl-{ID}|{number}|{word}|n1|None" for number, word in enumerate(words)))
    over = (EngineState.ENDED, EngineState.DROPPED)
    assert (found[ID].state in over) == (set(words) <= {"COMPLETED", "FAILED", "NODE_FAIL"})
    assert (found[ID].state is EngineState.DROPPED) == (set(words) == {"NODE_FAIL"})


@given(st.text(max_size=300))
def test_no_output_of_squeue_is_too_odd_to_be_read(text: str) -> None:
    assert all(len(name) == 16 for name in seen_in(text))


# -- what follows from it ----------------------------------------------------------------------------------------------

APART_S, SILENCE_S = 4.0, 10.0
#: The engine's answer, how much later it was given, and whether the node had given a sign of life since the last look.
Look = tuple[EngineState, float, bool]
LOOKS = st.lists(
    st.tuples(st.sampled_from(EngineState), st.sampled_from([0.0, 1.0, 3.0, 5.0]), st.booleans()), max_size=30
)
LAST = {LaunchFinding.LOST, LaunchFinding.NEVER_BEGAN, LaunchFinding.FORGOTTEN}
GONE = {EngineState.ENDED, EngineState.DROPPED, EngineState.ABSENT}


def followed(looks: list[Look], *, has_begun: bool) -> list[tuple[float, float, Watched]]:
    """Return when each answer was given, for how long the node had been silent, and what was concluded."""
    found, now, silent_s, watched = [], 0.0, 0.0, Watched()
    for state, later_s, is_heard in looks:
        now += later_s
        silent_s = 0.0 if is_heard else silent_s + later_s
        watched = looked(
            watched, Sighting(state), now, has_begun=has_begun, silent_s=silent_s, apart_s=APART_S, silence_s=SILENCE_S
        )
        found.append((now, silent_s, watched))
    return found


@given(LOOKS, st.booleans())
def test_nothing_is_over_without_two_answers_apart_and_a_silent_node(looks: list[Look], has_begun: bool) -> None:
    found = followed(looks, has_begun=has_begun)
    for index, (now, silent_s, watched) in enumerate(found):
        if watched.finding not in LAST:
            continue
        since = index
        while since and looks[since - 1][0] in {*GONE, EngineState.UNKNOWN}:
            since -= 1
        gone_at = [
            at
            for (state, *_), (at, *_) in zip(looks[since : index + 1], found[since : index + 1], strict=True)
            if state in GONE
        ]
        assert looks[index][0] in GONE
        assert now - gone_at[0] >= APART_S
        assert not has_begun or silent_s >= SILENCE_S
        assert (watched.finding is LaunchFinding.LOST) == has_begun
        break  # What is concluded once stays.


@given(LOOKS, st.booleans())
def test_an_engine_that_does_not_answer_changes_nothing(looks: list[Look], has_begun: bool) -> None:
    before = Watched()
    for (state, *_), (_, _, watched) in zip(looks, followed(looks, has_begun=has_begun), strict=True):
        if state is EngineState.UNKNOWN:
            assert watched == before
        before = watched


@given(LOOKS, st.booleans())
def test_what_is_concluded_once_stays(looks: list[Look], has_begun: bool) -> None:
    findings = [watched.finding for _, _, watched in followed(looks, has_begun=has_begun)]
    ends = [index for index, finding in enumerate(findings) if finding in LAST]
    assert not ends or set(findings[ends[0] :]) == {findings[ends[0]]}


# -- whole workers, with a Slurm of three scripts ----------------------------------------------------------------------

#: Starts the script of the job at once, and notes its name.
SUBMITS = """
name=$(for one; do case $one in --job-name=*) echo "${one#*=}";; esac; done)
cat > JOBS/$$.sh
echo "$name" >> JOBS/submitted
( setsid sh JOBS/$$.sh </dev/null >>JOBS/log 2>&1 & )
"""
RUNS = """
test -e JOBS/submitted && sort -u JOBS/submitted | while read name; do echo "$name|1|RUNNING|n|1|None"; done
exit 0
"""


@pytest.fixture
def jobs(programs: Path, tmp_path: Path) -> Path:
    """A Slurm of three scripts; return the folder of its jobs."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    fake(programs, "sbatch", of(folder, f"{SUBMITS}echo $$"))
    fake(programs, "squeue", of(folder, RUNS))
    fake(programs, "scancel", "")
    return folder


def of(folder: Path, lines: str) -> str:
    return lines.replace("JOBS", str(folder))


def noting(runs: Path, gate: Path) -> list[str]:
    """Return a worker that notes that it runs, and ends once a file is there."""
    return script(f"echo run >> {runs}; until test -e {gate}; do sleep 0.05; done")


def begins(task: Task, tmp_path: Path) -> tuple[Path, Path]:
    """Start a worker; return the files in which it notes its runs, and for which it waits."""
    runs, gate = tmp_path / "runs", tmp_path / "gate"
    spawn(noting(runs, gate), "--runner", "slurm", name="a")
    wait_until(runs.exists, what="it to run")
    task.has("agent.placed", "a")
    return runs, gate


def test_a_submission_that_fails_after_it_has_worked_lets_it_run_once(
    programs: Path, jobs: Path, tmp_path: Path
) -> None:
    fake(programs, "sbatch", of(jobs, f"{SUBMITS}echo 'sbatch: error: Socket timed out' >&2; exit 1"))
    task = new_task()
    runs, gate = begins(task, tmp_path)
    wait_for_text(jobs / "submitted")
    gate.touch()
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"
    assert runs.read_text() == "run\n"


def test_two_jobs_of_one_launch_run_it_once(programs: Path, jobs: Path, tmp_path: Path) -> None:
    fake(programs, "sbatch", of(jobs, f"{SUBMITS}( setsid sh JOBS/$$.sh </dev/null >>JOBS/log 2>&1 & )\necho $$"))
    task = new_task()
    runs, gate = begins(task, tmp_path)
    wait_for_text(jobs / "log", "is carried out elsewhere already")
    gate.touch()
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"
    assert runs.read_text() == "run\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "shown"),
    [
        ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "unknown"),
        ("sed 's/.*/&|1|BEWITCHED|n|1|None/' JOBS/submitted", "unknown"),
        ("exec sleep 100", None),
    ],
)
def test_a_squeue_of_which_nothing_can_be_learnt_loses_nothing(
    programs: Path, jobs: Path, tmp_path: Path, answers: str, shown: str | None
) -> None:
    fake(programs, "squeue", of(jobs, answers))
    task = new_task()
    runs, gate = begins(task, tmp_path)
    if shown is not None:
        wait_until(lambda: placement("a")["state"], accept=lambda state: state == shown, what=f"it to be {shown}")
    passes(3)
    assert statuses() == {"a": "running"}
    gate.touch()
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"
    assert runs.read_text() == "run\n"


@pytest.mark.slow
def test_a_squeue_that_prints_garbage_loses_nothing_that_gives_a_sign_of_life(
    programs: Path, jobs: Path, tmp_path: Path
) -> None:
    """Without a line of its own it is absent; a node that was heard is believed more than that."""
    ask_engine("slurm", pollSeconds=0.5, silenceSeconds=15)
    fake(programs, "squeue", "head -c 10000 /dev/urandom")
    task = new_task()
    runs, gate = begins(task, tmp_path)
    wait_until(lambda: placement("a")["state"], accept=lambda state: state == "absent", what="it to be absent")
    passes(2)
    assert row("a")["status"] == "running"
    gate.touch()
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"
    assert runs.read_text() == "run\n"


@pytest.mark.slow
def test_a_cancel_is_proven_though_scancel_hangs(programs: Path, jobs: Path, tmp_path: Path) -> None:
    fake(programs, "scancel", "exec sleep 100")
    task = new_task()
    begins(task, tmp_path)
    assert run("cancel", "a", "--json").json["cancelled"] is True
    assert is_settled(task, "a")["status"] == "cancelled"


@pytest.mark.slow
def test_a_launch_that_slurm_forgets_before_it_begins_is_submitted_again_but_not_for_ever(
    programs: Path, jobs: Path
) -> None:
    fake(programs, "sbatch", of(jobs, "cat > /dev/null; echo x >> JOBS/submitted; echo 1"))
    fake(programs, "squeue", "")
    task = new_task()
    spawn(["true"], "--runner", "slurm", name="a")
    run("wait", "a", check=False)
    ended = is_settled(task, "a")
    assert (ended["status"], ended["reason"]) == ("failed", "not_started")
    assert (jobs / "submitted").read_text() == "x\n" * 3
    assert json.loads((launch_of(task, "a") / "claim.json").read_bytes())["by"] == "head"


def test_a_launch_whose_node_fails_before_it_begins_is_given_to_another_one(
    programs: Path, jobs: Path, tmp_path: Path
) -> None:
    """The first job is lost with its node, before anything of it has run; the second one runs."""
    first = f"if mkdir JOBS/first 2>/dev/null; then cat > /dev/null; echo x >> JOBS/failed; echo 1; exit; fi\n{SUBMITS}"
    fake(programs, "sbatch", of(jobs, f"{first}echo 2"))
    name = f"agentctl-$(basename {tmp_path}/.agentctl/tasks/*/agents/a/launches/*)"
    fake(programs, "squeue", of(jobs, f'test -e JOBS/failed && echo "{name}|1|NODE_FAIL|n1|None"\n{RUNS}'))
    task = new_task()
    spawn(["true"], "--runner", "slurm", name="a")
    run("wait", "a")
    assert is_settled(task, "a")["status"] == "completed"
    assert (jobs / "submitted").read_text().count("agentctl-") == 1


@pytest.mark.slow
def test_what_slurm_says_of_a_worker_that_runs_quietly_is_shown(programs: Path, jobs: Path, tmp_path: Path) -> None:
    """Its stand-in rests as long as its node gives signs of life; Slurm is asked all the same."""
    ask_engine("slurm", pollSeconds=0.5, silenceSeconds=60)
    _, gate = begins(new_task(), tmp_path)
    for answers, state, words in [
        (RUNS, "running", "RUNNING"),
        (RUNS.replace("RUNNING", "NODE_FAIL"), "dropped", "NODE_FAIL"),
        ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "unknown", None),
        (RUNS, "running", "RUNNING"),
    ]:
        fake(programs, "squeue", of(jobs, answers))
        wait_until(lambda: placement("a"), accept=lambda told: (told["state"], told["words"]) == (state, words))  # noqa: B023 - called here
        assert statuses() == {"a": "running"}
    gate.touch()
    run("wait", "a")


def test_the_interpreter_of_the_nodes_is_the_one_that_was_set(programs: Path, jobs: Path, tmp_path: Path) -> None:
    python = tmp_path / "python of the nodes"
    python.symlink_to(sys.executable)
    ask_engine("slurm", pollSeconds=0.5, silenceSeconds=1, python=str(python))
    new_task()
    spawn(["true"], "--runner", "slurm", name="a")
    wait_until((jobs / "submitted").exists, what="it to be submitted")
    (job,) = jobs.glob("*.sh")
    assert str(python) in job.read_text()
    run("cancel", "a", check=False)


# -- one whose turn never comes ----------------------------------------------------------------------------------------

#: Has the job wait for ever, and notes its name.
WAITS = """
for one in "$@"; do case $one in --job-name=*) echo "${one#*=}" >> JOBS/waiting;; esac; done
cat > /dev/null
echo 7
"""
#: Takes the job out of the queue, unless it is too busy: as often as there are lines in a file.
TAKES_OUT = """
if [ -s JOBS/busy ]; then
    sed -i 1d JOBS/busy
    echo 'scancel: error: slurm_load_jobs error: Socket timed out on send/recv operation' >&2
    exit 1
fi
case "$*" in *--state=PENDING*|*--name=agentctl-*) : > JOBS/waiting;; esac
"""


@pytest.fixture
def waiting(programs: Path, jobs: Path) -> Path:
    """Have the jobs of the Slurm of three scripts wait for ever; return the file with their names."""
    fake(programs, "sbatch", of(jobs, WAITS))
    fake(programs, "squeue", of(jobs, "test -e JOBS/waiting && sed 's/$/|7|PENDING||Resources/' JOBS/waiting; exit 0"))
    fake(programs, "scancel", of(jobs, TAKES_OUT))
    return jobs / "waiting"


def queued(waiting: Path) -> Task:
    """Start a worker, and wait until it is shown in the queue of its engine."""
    task = new_task()
    spawn(["true"], "--runner", "slurm", name="a")
    wait_until(lambda: placement("a")["words"] == "PENDING", what="it to wait in the queue")
    assert waiting.read_text().strip() == f"agentctl-{launch_of(task, 'a').name}"
    return task


@pytest.mark.parametrize("busy", [0, 1, 3])
def test_a_cancel_takes_it_out_of_the_queue_of_an_engine_that_is_busy_at_first(waiting: Path, busy: int) -> None:
    task = queued(waiting)
    (waiting.parent / "busy").write_text("busy\n" * busy)
    run("cancel", "a")
    ended = is_settled(task, "a")
    assert (ended["status"], ended["message"]) == ("cancelled", "it was waiting in the queue of slurm")
    assert waiting.read_text() == ""


@pytest.mark.slow
@pytest.mark.follows("worker_programs/on_node/verdicts.Verdicts.left_behind: agentctl doctor --runner --fix")
def test_one_that_its_engine_does_not_let_go_is_told_with_what_ends_it(waiting: Path) -> None:
    task = queued(waiting)
    busy = waiting.parent / "busy"
    busy.write_text("busy\n" * 1000)
    run("cancel", "a")
    ended = is_settled(task, "a")
    assert ended["status"] == "cancelled", "nothing will begin, whatever the engine does"
    assert "slurm still has its job 7, which does nothing if it is started: " in ended["message"]
    busy.unlink()
    verdict = launch_of(task, "a") / "verdict.json"
    os.utime(verdict, (0, 0))  # An engine shows a job for some seconds after its end.
    put = {"--fix": "--fix --timeout-seconds 1"}  # Of its probe, which would wait in the queue too.
    follow(ended["message"], "agentctl doctor --runner slurm --fix", put=put, check=False)
    assert waiting.read_text() == ""

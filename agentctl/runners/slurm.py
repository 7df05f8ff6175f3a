"""Slurm, by its own commands: sbatch, squeue and scancel.

Jobs are addressed by name, since a controller that was killed gives their numbers out again. `scancel --signal` reaches
no batch script, and `scancel --batch --signal` exactly that one, which is our program (measured with Slurm 22.05). By
default sbatch stores the whole environment in the controller's state; `--export=NIL` stores none. A node that fails
must not have its job started again elsewhere while it still runs: hence `--no-requeue`, and the claim for the rest.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Mapping, Sequence

from agentctl.adapters.searchpath import program_at, settled
from agentctl.domain.placement import Placement
from agentctl.domain.worker.sightings import EngineState, Sighting
from agentctl.errors import Argument, Refused, UsageError, WithArguments
from agentctl.runners.runner import PREFIX, EngineDown, LaunchOrder, Rejected, Remark

#: Without a controller sbatch takes 9 s and scancel 18 s (measured).
_LIMIT_S = 30.0
_MOST_BYTES = 64 << 20
_PROGRAMS = ("sbatch", "squeue", "scancel")
_NAME = re.compile(rf"{PREFIX}([0-9a-f]{{16}})", re.ASCII)
#: Time between the signal of a job that has run out of time and its end: the worker's own escalation has to fit. Slurm
#: looks only twice a minute, and sends the signal up to a minute early: a short job has to get something of its time.
_LONGEST_NOTICE_S, _SHORTEST_NOTICE_S, _EARLY_S = 120, 5, 60
#: What is ours to say, in both of sbatch's spellings; and what has it start nothing.
_OURS = (
    "job-name", "export", "export-file", "requeue", "no-requeue", "output", "error", "open-mode", "wrap", "array",
    "parsable", "comment", "chdir", "signal", "wait", "input", "test-only", "ntasks", "nodes", "uid", "gid",
    "get-user-env", "help", "usage", "version",
)  # fmt: skip
_OURS_SHORT = frozenset("JoeaDWinNhV")
#: The short options that take what stands behind them for their value; behind the others stand further options.
_SHORT_WITH_VALUE = frozenset("ABbCcdFGLMmpqStwx")
#: Variables by which a person sets defaults of these commands: what is ours to say, and which jobs are shown or met.
_OURS_IN_ENVIRONMENT = frozenset(
    f"SBATCH_{name}"
    for name in (
        "ARRAY_INX", "EXPORT", "GET_USER_ENV", "JOB_NAME", "NO_REQUEUE", "OPEN_MODE", "REQUEUE", "SIGNAL", "WAIT",
    )
)  # fmt: skip
_OF_OTHERS = ("SQUEUE_", "SCANCEL_")
_WORDS = {
    EngineState.QUEUED: "PENDING CONFIGURING REQUEUED REQUEUE_HOLD REQUEUE_FED RESV_DEL_HOLD SPECIAL_EXIT",
    EngineState.RUNNING: "RUNNING COMPLETING SUSPENDED STOPPED SIGNALING RESIZING STAGE_OUT",
    EngineState.ENDED: "COMPLETED CANCELLED FAILED TIMEOUT DEADLINE OUT_OF_MEMORY REVOKED",
    EngineState.DROPPED: "NODE_FAIL PREEMPTED BOOT_FAIL",
}
_STATES = {word: state for state, words in _WORDS.items() for word in words.split()}
#: What sbatch says when it has not reached the controller, or does not know whether it has.
_SILENT = re.compile(
    r"contact slurm controller|Socket timed out|Connection (?:refused|timed out|reset)|Zero Bytes were transmitted"
    r"|Unable to (?:establish|resolve)|Transport endpoint|Resource temporarily unavailable|Munge decode failed"
    r"|Protocol authentication error|in standby mode|SlurmctldHost|slurm_(?:msg|receive|send)|socket error"
)
#: What it says when there is no room now: so many jobs may wait at once.
_FULL = re.compile(r"MaxSubmitJob|job submit limit|unable to accept job|maximum job (?:count|limit)", re.IGNORECASE)

#: What scancel says of jobs that are over or not there.
_OVER = re.compile(r"Invalid job id|already complet|No active jobs match")

_UNKNOWN = "it is not known whether Slurm ends all processes of a job"
_CGROUP = "whoever runs the cluster can set ProctrackType=proctrack/cgroup in slurm.conf"


class Slurm:
    """The person's Slurm."""

    name = "slurm"

    def check(self, placement: Placement) -> None:
        """See `Runner.check`."""
        missing = [name for name in _PROGRAMS if program_at(name) is None]
        if missing:
            raise Refused(
                f"Slurm is not here: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in PATH",
                hint=WithArguments("run it where Slurm's commands are, or leave ", Argument("runner", "slurm"), " out"),
            )
        for one in placement.args:
            _check_option(one)

    def launch(self, launch: LaunchOrder) -> str:
        """See `Runner.launch`."""
        script = f"#!/bin/sh\nexec {shlex.join(launch.argv)}\n"
        done = _run(["sbatch", *sbatch_options(launch)], script)
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode:
            is_for_now = not said or _SILENT.search(said) or _FULL.search(said)
            raise EngineDown(_plainly(said)) if is_for_now else Rejected(f"Slurm refuses it: {_plainly(said)}")
        return done.stdout.decode(errors="replace").strip().split(";")[0]

    def poll(self) -> Mapping[str, Sighting]:
        """See `Runner.poll`."""
        done = _run(["squeue", "--noheader", "--states=all", "--me", "--format=%j|%i|%T|%N|%r"])
        if done.returncode:
            raise EngineDown(
                done.stderr.decode(errors="replace").strip()[-500:] or f"squeue ended with {done.returncode}"
            )
        return seen_in(done.stdout.decode(errors="replace"))

    def interrupt(self, launch_id: str) -> None:
        """See `Runner.interrupt`."""
        _cancel(launch_id, "--state=PENDING")
        _cancel(launch_id, "--batch", "--signal=INT", "--state=RUNNING")

    def kill(self, launch_id: str) -> None:
        """See `Runner.kill`."""
        _cancel(launch_id)

    def reap(self, launch_id: str) -> None:
        """See `Runner.reap`: Slurm forgets a job by itself."""

    def reconcile(self, wanted: Collection[str]) -> list[str]:
        """See `Runner.reconcile`."""
        alive = (EngineState.QUEUED, EngineState.RUNNING)
        return [launch_id for launch_id, seen in self.poll().items() if seen.state in alive and launch_id not in wanted]

    def remarks(self) -> Sequence[Remark]:
        """See `Runner.remarks`: how Slurm tells which processes belong to a job."""
        if program_at("scontrol") is None:
            return [Remark("note", f"scontrol is not in PATH: {_UNKNOWN}")]
        said = _run(["scontrol", "show", "config"]).stdout.decode(errors="replace")
        found = re.search(r"^ProctrackType\s*=\s*(\S+)", said, re.MULTILINE)
        if found is None:
            return [Remark("note", f"scontrol does not say the ProctrackType: {_UNKNOWN}")]
        if found[1].endswith("cgroup"):
            return [Remark("ok", f"Slurm ends everything of a job ({found[1]})")]
        what = f"Slurm's ProctrackType is {found[1]}: a process of a worker that has become a daemon would outlive it"
        return [Remark("warning", f"{what} if agentctl's own shim on the node were killed", _CGROUP)]


RUNNER = Slurm()


def sbatch_options(launch: LaunchOrder) -> list[str]:
    """Return the arguments of sbatch for a launch."""
    asked = launch.placement
    found = [
        "--parsable", "--no-requeue", "--open-mode=append", "--export=NIL", "--nodes=1", "--ntasks=1", "--chdir=/",
        f"--job-name={launch.name}", f"--comment={launch.what}", f"--output={_literal(launch.log)}",
    ]  # fmt: skip
    named = {"--cpus-per-task": asked.cpus, "--mem": asked.memory, "--gpus": asked.gpus, "--partition": asked.partition}
    found += [f"{option}={value}" for option, value in named.items() if value is not None]
    if asked.time_s is not None:
        # Slurm counts in minutes; a job that is told of its end needs time for that before it.
        minutes = max(1, -(-asked.time_s // 60))
        notice_s = min(_LONGEST_NOTICE_S, max(_SHORTEST_NOTICE_S, (minutes * 60 - _EARLY_S) // 2))
        found += [f"--time={minutes}", f"--signal=B:INT@{notice_s}"]
    return [*found, *asked.args]


def _check_option(text: str) -> None:
    """Raise `UsageError` where a person's argument is not an option of sbatch, or one that is ours: cut short, too.

    sbatch takes `--exp=ALL` for `--export=ALL`, and `-HoFILE` for `-H -oFILE`.
    """
    option = text.split("=", 1)[0]
    if re.match(r"--?[A-Za-z]", text, re.ASCII) is None:
        raise UsageError(
            WithArguments(Argument("runner_arg"), f" must be an option of sbatch, such as --account=lab, not {text!r}")
        )
    if text.startswith("--"):
        meant = next((f"--{name}" for name in _OURS if name.startswith(option[2:])), None)
    else:
        meant = option[:2] if option[1] in _OURS_SHORT else None
        if meant is None and len(text) > 2 and text[1] not in _SHORT_WITH_VALUE:
            raise UsageError(
                WithArguments("each ", Argument("runner_arg"), f" is one option, not {text!r}"),
                hint=WithArguments(
                    Argument("runner_arg", text[:2]), ", and another ", Argument("runner_arg"), " for the rest"
                ),
            )
    if meant is not None:
        raise UsageError(
            WithArguments(f"agentctl says {meant} itself: {text!r} cannot be a ", Argument("runner_arg")),
            hint=WithArguments(
                "leave it out: ", Argument("runner_arg"), " is for what sbatch alone knows, such as --account=lab"
            ),
        )


def _literal(path: str) -> str:
    """Return a path in which sbatch replaces nothing: it takes `%j` for the number of the job."""
    return path.replace("%", "%%")


def seen_in(text: str) -> dict[str, Sighting]:
    """Return what the lines of squeue say, by launch; a line that is not ours, or damaged, is left out.

    A launch that was submitted again has several jobs: one that waits or runs counts most, then one that ended.
    """
    found: dict[str, Sighting] = {}
    for line in text.splitlines():
        parts = line.split("|", 3)
        name = _NAME.fullmatch(parts[0])
        if name is None or len(parts) < 4 or "|" not in parts[3]:
            continue
        node, reason = parts[3].rsplit("|", 1)
        reason = "" if reason == "None" else reason[:200]
        seen = Sighting(_STATES.get(parts[2], EngineState.UNKNOWN), parts[2][:40], node[:200], reason, parts[1][:40])
        if name[1] not in found or _weight(seen) >= _weight(found[name[1]]):
            found[name[1]] = seen
    return found


def _weight(seen: Sighting) -> int:
    return {EngineState.DROPPED: 0, EngineState.ENDED: 1}.get(seen.state, 2)


def _cancel(launch_id: str, *more: str) -> None:
    """Cancel or signal by name. Slurm has several exit codes for jobs that are over or not there: none is an error.

    Raises:
        EngineDown: Slurm says anything else: whether the job was reached is not known.
    """
    done = _run(["scancel", "--quiet", f"--user={os.geteuid()}", *more, f"--name={PREFIX}{launch_id}"])
    said = done.stderr.decode(errors="replace").splitlines()
    problems = [line.strip() for line in said if line.strip() and not _OVER.search(line)]
    if done.returncode and problems:
        raise EngineDown("; ".join(dict.fromkeys(problems))[:500])


def _run(argv: Sequence[str], script: str = "") -> subprocess.CompletedProcess[bytes]:
    try:
        done = subprocess.run(
            argv, input=os.fsencode(script), capture_output=True, timeout=_LIMIT_S, check=False,
            env=_environ(), start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise EngineDown(f"{argv[0]} has not answered within {_LIMIT_S:g} s") from None
    except OSError as error:
        raise EngineDown(f"{argv[0]} could not be run: {error.strerror}") from error
    if len(done.stdout) > _MOST_BYTES:
        raise EngineDown(f"{argv[0]} printed more than {_MOST_BYTES >> 20} MiB")
    return done


def _environ() -> dict[str, str]:
    """Return the environment for these commands: that of the person, who may have hidden jobs in it for their eyes."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _OURS_IN_ENVIRONMENT and not name.startswith(_OF_OTHERS)
    }
    return {**settled(kept), "LC_ALL": "C"}


def _plainly(said: str) -> str:
    """Return what sbatch says without its own prefixes."""
    lines = [re.sub(r"^sbatch: (?:error: )?", "", line) for line in said.splitlines()]
    return "; ".join(dict.fromkeys(line for line in lines if line))[:1000]

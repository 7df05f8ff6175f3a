"""A private Slurm with several nodes on one machine: real daemons, and all the ways in which they can fail.

Each node lives in a UTS namespace: it has a host name of its own, and whatever a job starts there is found again, a
daemon with an empty environment too. It also has an /etc/hosts of its own, in which the nodes know each other. The
daemons listen at addresses of the cluster alone, below 127.213 or, with `netns`, 10.213.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, Self

import pytest

from tests.life import Known, known, stat_fields
from tests.slurm import guard
from tests.slurm.surroundings import HEAD, Surroundings, own_environ, tracks_cgroup
from tests.support import Completed, environment, wait_until

Tracking = Literal["linuxproc", "cgroup"]

CONTROLLER_PORT, NODE_PORT = 21301, 21302
UP_S = 30.0
IDLE_S = 60.0
COMMAND_S = 30.0
END_S = 10.0
#: Of a Unix socket's address; Slurm and munge make sockets in the cluster's folder.
LONGEST_FOLDER = 75


class Job(NamedTuple):
    """A job, as squeue tells it."""

    id: str
    state: str
    node: str
    reason: str
    name: str


class Cluster:
    """A cluster in a folder: `with Cluster(folder) as cluster`. Its nodes are n1, n2 and so on."""

    def __init__(
        self,
        folder: Path,
        nodes: int = 3,
        *,
        netns: bool = False,
        scheduler_delay_s: int = 0,
        slurmd_timeout_s: int = 5,
        message_timeout_s: int = 2,
        job_requeue: bool = True,
        tracking: Tracking = "linuxproc",
        gpus: int = 0,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Describe a cluster; `up` starts it.

        Args:
            netns: each node has a network namespace, so that it can be cut off.
            scheduler_delay_s: for how long Slurm collects jobs before it schedules them; its own default is 3.
            slurmd_timeout_s: after which time without an answer a node is down.
            message_timeout_s: how long Slurm waits for an answer; its own default is 10, and then it takes half a
                minute until a lost node is held for dead, not 10 s.
            job_requeue: whether jobs start again, unless they ask for something else; Slurm's own default.
            tracking: how a node knows the processes of a job; `tracks_cgroup` tells whether it can be cgroup.
            gpus: how many devices each node gives out; they are files, not more.
            settings: other lines of slurm.conf.
        """
        self.folder = folder.resolve()
        self.nodes = tuple(f"n{number}" for number in range(1, nodes + 1))
        self.netns = netns
        self.tracking = tracking
        self._gpus = [self.folder / f"gpu{number}" for number in range(gpus)]
        self._settings = {
            "SlurmdTimeout": str(slurmd_timeout_s),
            "MessageTimeout": str(message_timeout_s),
            "TCPTimeout": str(min(2, message_timeout_s)),
            "SchedulerParameters": f"batch_sched_delay={scheduler_delay_s},sched_min_interval=0,bf_interval=1",
            "JobRequeue": str(int(job_requeue)),
            **(settings or {}),
        }
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._made: Surroundings | None = None
        #: A controller that was killed may have forgotten which numbers it has given to jobs.
        self._has_forgotten, self._first_job_id = False, 1

    # --- the whole

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @property
    def conf(self) -> Path:
        """Its slurm.conf."""
        return self.folder / "slurm.conf"

    @property
    def environ(self) -> dict[str, str]:
        """What the environment of a command must have for the command to speak with this cluster."""
        return {"SLURM_CONF": str(self.conf)}

    def up(self) -> None:
        """Start everything, and wait until each node is idle."""
        assert self._made is None, "it is up already"
        assert len(str(self.folder)) <= LONGEST_FOLDER, f"too long a path for sockets in it: {self.folder}"
        assert self.tracking == "linuxproc" or tracks_cgroup(), "no control groups of version 1 here"
        self._make_folder()
        self._made = Surroundings(self.folder, self.nodes, netns=self.netns, cgroup=self.tracking == "cgroup")
        try:
            self._made.make()
            self._write_files()
            self._start_munged()
            self._start(HEAD, "slurmctld", "-D", "-f", str(self.conf))
            self._start_slurmds(self.nodes)
            self.wait_idle(UP_S)
        except pytest.fail.Exception as error:
            said = self.log_ends()
            self.down()
            pytest.fail(f"{error}\n{said}")
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """End everything it started, and remove what it made outside of its folder; it may be down already."""
        if self._made is None:
            return
        made, self._made = self._made, None
        made.remove()
        for daemon in self._daemons.values():
            daemon.wait(END_S)
        self._daemons.clear()

    @property
    def _surroundings(self) -> Surroundings:
        assert self._made is not None, "it is not up"
        return self._made

    def restore(self) -> None:
        """Make it as new for the next test: nothing is cut off or dead, each node is idle, no job is left.

        No job of the next test has the number of an earlier one: a node holds it for that one still, and does not start
        it, or tells the end of that one as its end.
        """
        if self._has_forgotten:
            self._first_job_id += 1000
            self._write_conf()
        if not self._runs("slurmctld"):
            self.start_controller()
        elif self._has_forgotten:
            self.run("scontrol", "reconfigure")
        self._has_forgotten = False
        states = self.node_states()
        for node in self.nodes:
            if self.netns:
                self.rejoin(node)
            # A new controller asks the nodes only after 4 s, but hears at once from one that starts.
            if self._runs(node) and states[node].startswith("unknown"):
                self._end(node, signal.SIGKILL)
        self._start_slurmds([node for node in self.nodes if not self._runs(node)])
        if not self.problem():
            return
        self.run("scancel", "--user=root", check=False)
        wait_until(self._cleaned, IDLE_S, what="the cluster to be as new", accept=lambda problem: not problem)

    def resume_nodes(self) -> None:
        """Have nodes take jobs again that Slurm has taken out of service, as those who administer it would.

        It does so with each node to which a controller that was killed has given a job twice ("Duplicate jobid"). And
        jobs whose end came while no controller ran are running for it, until it asks the nodes which ones they have.
        """
        self.run("scontrol", "reconfigure", check=False)
        self._resume()

    def _resume(self) -> None:
        for node, state in self.node_states().items():
            if state.rstrip("*").startswith(("down", "drain")):
                self.run("scontrol", "update", f"nodename={node}", "state=resume", check=False)

    def run(
        self, *argv: str | Path, check: bool = True, stdin: str | None = None, timeout: float = COMMAND_S
    ) -> Completed:
        """Run a command that speaks with this cluster."""
        done = subprocess.run(
            list(map(str, argv)),
            env=environment(self.environ),
            input=stdin or "",
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            check=False,
        )
        ended = Completed(argv=tuple(map(str, argv)), code=done.returncode, out=done.stdout, err=done.stderr)
        if check and ended.code != 0:
            pytest.fail(f"exit code 0 was expected\n{ended}")
        return ended

    def log_ends(self, lines: int = 8) -> str:
        """Return the last lines of each daemon's log."""
        logs = sorted((self.folder / "log").glob("*"))
        ends = {log.name: log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:] for log in logs}
        return "\n".join(f"{name}: {line}" for name, end in ends.items() for line in end)

    # --- jobs

    def submit(self, script: str, *options: str) -> str:
        """Submit a shell script with options of sbatch; return the job's id."""
        output = f"--output={self.folder}/job-%j.out"
        text = f"#!/bin/sh\n{script}\n"
        return self.run("sbatch", "--parsable", output, *options, stdin=text).out.strip()

    def jobs(self) -> list[Job]:
        """Return the jobs that Slurm knows; one that has ended stays for some minutes."""
        told = self.run("squeue", "--noheader", "--states=all", "--format=%i|%T|%N|%r|%j").out
        return [Job(*line.split("|", 4)) for line in told.splitlines()]

    def job(self, job_id: str) -> Job | None:
        """Return one job; None if Slurm does not know it."""
        return next((job for job in self.jobs() if job.id == job_id), None)

    def wait_for_job(self, job_id: str, *states: str, timeout_s: float = 30) -> Job:
        """Wait until a job is in one of these states."""
        return wait_until(
            lambda: self.job(job_id) or Job(job_id, "unknown", "", "", ""),
            timeout_s,
            what=f"the job to be {' or '.join(states)}",
            accept=lambda job: job.state in states,
        )

    def _unfinished(self) -> list[str]:
        return self.run("squeue", "--noheader", "--format=%i").out.split()

    # --- the controller

    def stop_controller(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """Kill the controller, or end it with a signal that lets it keep its state, as TERM does."""
        self._end("slurmctld", sig)
        self._has_forgotten |= sig is signal.SIGKILL

    def start_controller(self) -> None:
        """Start the controller again, and wait until it answers."""
        assert not self._runs("slurmctld"), "it runs already"
        self._start(HEAD, "slurmctld", "-D", "-f", str(self.conf))
        self._wait_for_controller()

    # --- nodes

    def node_states(self) -> dict[str, str]:
        """Return the state of each node, as sinfo tells it: an asterisk after it says that the node does not answer."""
        told = self.run("sinfo", "--noheader", "--Node", "--format=%N %T").out
        return dict(line.split(maxsplit=1) for line in map(str.strip, told.splitlines()))

    def wait_idle(self, timeout_s: float = IDLE_S) -> None:
        """Wait until each node answers and has no job."""
        self._wait_for_controller(timeout_s)
        wait_until(
            self.node_states,
            timeout_s,
            what="each node to be idle",
            accept=lambda states: list(states) == list(self.nodes) and set(states.values()) == {"idle"},
        )

    def stop_node(self, node: str, sig: signal.Signals = signal.SIGKILL) -> None:
        """End a node's slurmd alone; its jobs run on."""
        self._end(node, sig)

    def start_node(self, node: str, timeout_s: float = IDLE_S) -> None:
        """Start a node's slurmd again, and wait until the controller has heard of it."""
        assert not self._runs(node), "it runs already"
        started = datetime.now().replace(microsecond=0)  # noqa: DTZ005 - Slurm tells local times.
        self._start_slurmds([node])
        wait_until(
            lambda: self._node_facts(node),
            timeout_s,
            what=f"{node} to register",
            accept=lambda facts: _registered_since(facts, started),
        )

    def lose_node(self, node: str) -> None:
        """Kill all on a node at once, as if it had lost its power: slurmd, the keepers of its jobs, and the jobs."""
        # slurmd first, and then the keepers: they would tell the controller how the jobs end.
        self._end(node, signal.SIGKILL)
        self._kill(self.keepers(node))
        guard.kill_members(self._surroundings.namespace(node))

    def mark_down(self, node: str) -> None:
        """Let the controller hold a node for dead now, without waiting for it: its jobs get NODE_FAIL."""
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")

    def partition(self, node: str) -> None:
        """Cut a node off from the controller and the other nodes; all on it runs on."""
        self._surroundings.set_link(node, "down")

    def rejoin(self, node: str) -> None:
        """Undo `partition`."""
        self._surroundings.set_link(node, "up")

    def processes(self, node: str) -> list[Known]:
        """Return all processes on a node: slurmd, the keepers of its jobs, and all that the jobs have started."""
        found = [(pid, stat_fields(pid)) for pid in guard.members(self._surroundings.namespace(node))]
        return [Known(pid, int(fields[19])) for pid, fields in found if fields is not None]

    def keepers(self, node: str) -> list[Known]:
        """Return the processes of Slurm on a node that look after its jobs, and tell the controller how they end."""
        return [process for process in self.processes(node) if _program(process.pid) == "slurmstepd"]

    def tasks(self, node: str) -> list[Known]:
        """Return all processes that jobs have started on a node."""
        return list(self._started(node))

    def programs(self, node: str) -> list[str]:
        """Return the names of the programs that jobs run on a node."""
        return list(self._started(node).values())

    def _started(self, node: str) -> dict[Known, str]:
        named = {one: _program(one.pid) for one in self.processes(node)}
        return {one: name for one, name in named.items() if name not in {"", "slurmd", "slurmstepd"}}

    # --- daemons

    def daemon(self, name: str) -> Known:
        """Return the process of `slurmctld`, `munged` or, by the name of its node, a slurmd."""
        return known(self._daemons[name].pid)

    def _runs(self, name: str) -> bool:
        return self._daemons[name].poll() is None

    def _end(self, name: str, sig: signal.Signals) -> None:
        daemon = self._daemons[name]
        daemon.send_signal(sig)
        try:
            daemon.wait(END_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{name} does not end of {sig.name}\n{self.log_ends()}")

    def _start_slurmds(self, nodes: Sequence[str]) -> None:
        """Start the slurmd of these nodes; the programs that lead to it have then ended: they look like tasks."""
        for node in nodes:
            self._start(node, "slurmd", "-D", "-N", node, "-f", str(self.conf))
        wait_until(
            lambda: [node for node in nodes if self._runs(node) and _program(self._daemons[node].pid) != "slurmd"],
            what="slurmd to start",
            accept=lambda still: not still,
        )

    def _start(self, place: str, *argv: str) -> None:
        """Start a daemon on a node or on the head."""
        name = argv[0] if place == HEAD else place
        with (self.folder / "log" / name).open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [*self._surroundings.within(place), *argv],
                cwd="/",
                env=own_environ() | self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _start_munged(self) -> None:
        place = self.folder / "munge"
        files = [f"--{what}-file={place / what}" for what in ("key", "pid", "log", "seed")]
        # Forced, because it does not like that only we may enter the folders of pytest.
        (place / "sock").unlink(missing_ok=True)
        self._start(HEAD, "munged", "--foreground", "--force", f"--socket={place}/sock", *files, "--num-threads=2")
        wait_until((place / "sock").is_socket, UP_S, what="munged to listen")

    def _wait_for_controller(self, timeout_s: float = UP_S) -> None:
        wait_until(self._problem_of_controller, timeout_s, what="the controller", accept=lambda problem: not problem)

    def _problem_of_controller(self) -> str:
        if not self._runs("slurmctld"):
            pytest.fail(f"the controller has ended\n{self.log_ends()}")
        if not _listens(self._surroundings.address(HEAD), CONTROLLER_PORT):
            return "nothing listens"  # A command would wait for a second before it tries again.
        asked = self.run("sinfo", check=False)
        return f"sinfo ended with {asked.code}: {asked.err}" if asked.code != 0 else ""

    def _node_facts(self, node: str) -> dict[str, str]:
        words = self.run("scontrol", "--oneliner", "show", "node", node).out.split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def _cleaned(self) -> str:
        tasks, keepers = self._on_nodes()
        # One that found no controller tells the end 15 s later, by a number that another job has by then.
        self._kill(tasks if tasks or self._unfinished() else keepers)
        self._resume()
        return self.problem()

    def problem(self) -> str:
        """Return what differs from a new cluster; "" if nothing does."""
        states, jobs, (tasks, keepers) = self.node_states(), self._unfinished(), self._on_nodes()
        is_new = set(states.values()) == {"idle"} and not (jobs or tasks or keepers)
        return "" if is_new else f"{states} {jobs} {tasks} {keepers}"

    def _on_nodes(self) -> tuple[list[Known], list[Known]]:
        """Return what jobs have started on the nodes, and the keepers of jobs."""
        tasks = [one for node in self.nodes for one in self.tasks(node)]
        return tasks, [one for node in self.nodes for one in self.keepers(node)]

    def _kill(self, processes: Iterable[Known]) -> None:
        for process in processes:
            try:
                os.kill(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # --- files

    def _make_folder(self) -> None:
        for name in ("munge", "state", "log", *(f"spool/{node}" for node in self.nodes)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def _write_files(self) -> None:
        key = self.folder / "munge" / "key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        self._write_conf()
        for device in self._gpus:
            device.touch()
        if self._gpus:
            lines = [f"Name=gpu File={device}\n" for device in self._gpus]
            (self.folder / "gres.conf").write_text("".join(lines), encoding="utf-8")
        if groups := self._surroundings.groups:
            lines = ["CgroupPlugin=cgroup/v1", "CgroupAutomount=no", f"CgroupMountpoint={groups}", ""]
            (self.folder / "cgroup.conf").write_text("\n".join(lines), encoding="utf-8")

    def _write_conf(self) -> None:
        self.conf.write_text("\n".join([*self._conf_lines(), ""]), encoding="utf-8")

    def _conf_lines(self) -> list[str]:
        settings = {
            "ClusterName": "agentctl",
            "SlurmctldHost": f"{HEAD}({self._surroundings.address(HEAD)})",
            "SlurmctldPort": str(CONTROLLER_PORT),
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/munge/sock",
            "SlurmUser": "root",
            "StateSaveLocation": f"{self.folder}/state",
            "SlurmdSpoolDir": f"{self.folder}/spool/%n",
            "SlurmctldPidFile": f"{self.folder}/slurmctld.pid",
            "SlurmdPidFile": f"{self.folder}/slurmd-%n.pid",
            "ProctrackType": f"proctrack/{self.tracking}",
            "TaskPlugin": "task/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "AccountingStorageType": "accounting_storage/none",
            "SwitchType": "switch/none",
            "MpiDefault": "none",
            # Otherwise they listen at all addresses of the machine.
            "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
            "ReturnToService": "2",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            # The nodes claim more than the machine has.
            "SlurmdParameters": "config_overrides",
            "SlurmctldTimeout": "10",
            "InactiveLimit": "0",
            "KillWait": "30",
            "CompleteWait": "0",
            "MinJobAge": "300",
            "FirstJobId": str(self._first_job_id),
            **({"GresTypes": "gpu"} if self._gpus else {}),
            **self._settings,
        }
        gpus = f" Gres=gpu:{len(self._gpus)}" if self._gpus else ""
        facts = f"Port={NODE_PORT} CPUs=4 RealMemory=4000 State=UNKNOWN{gpus}"
        return [
            *(f"{name}={value}" for name, value in settings.items()),
            *(f"NodeName={node} NodeAddr={self._surroundings.address(node)} {facts}" for node in self.nodes),
            f"PartitionName=main Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP",
        ]


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _registered_since(facts: Mapping[str, str], started: datetime) -> bool:
    """Return whether a node answers, with a slurmd that was started then or later."""
    if "*" in facts["State"] or "DOWN" in facts["State"]:
        return False
    try:
        return datetime.fromisoformat(facts["SlurmdStartTime"]) >= started
    except ValueError:
        return False  # None has registered so far.

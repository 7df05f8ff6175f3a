"""`doctor --runner`: whether workers can run on the nodes of an engine, and a root lie on a shared file system.

A probe is started there as a worker would be. A root on a network file system that passes is accepted for the commands
of this machine; without that, they refuse it.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence

import agentctl
from agentctl.adapters.accepted import accept, acceptance_of, reject
from agentctl.adapters.codemark import code_mark
from agentctl.adapters.files import make_folders
from agentctl.adapters.mounts import Mount, network_mount
from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import ProbeDir, Root
from agentctl.domain.placement import LOCAL, Placement, check_resources, check_runner
from agentctl.domain.worker.sightings import BEAT_S
from agentctl.errors import AgentctlError, AtTerminal, Refused, UsageError
from agentctl.lean import TYPE_CHECKING, NamedTuple
from agentctl.operations.doctor.probing import NodeProbe, ProbeAnswer, cancel_probe, leftovers, remove_probe
from agentctl.operations.doctor.reaching import hosts_for, programs_here
from agentctl.operations.doctor.strays import examine_strays
from agentctl.operations.where.calling import is_from_worker
from agentctl.operations.where.findings import Finding, finding
from agentctl.operations.where.lineage import limited, shown_caller
from agentctl.operations.where.personal_config import RUNNERS, personal_file, section
from agentctl.runners.program import SCRIPT, TRIAL, argv_of
from agentctl.runners.registry import load
from agentctl.runners.runner import EngineDown, Runner

if TYPE_CHECKING:
    from agentctl.errors import Step

#: A clock that differs by more is told: times in the log of a worker are those of its node.
_MOST_SKEW_S = 5.0
#: Files that take longer to the node and back are told: so long do a cancel and an answer take.
_MOST_BACK_S = 10.0
#: How much longer files may take at another time than they took for a probe: how long they do depends on when the file
#: system looked last.
_OFTEN_AS_LONG = 2
_TRIAL_S = 120.0


class NodeTest(NamedTuple):
    """What is to be tested."""

    runner: str
    partition: str | None = None
    args: Sequence[str] = ()
    #: What a node has to reach: HOST:PORT, or `agents`.
    network: Sequence[str] = ()
    limit_s: float = 60.0
    #: Whether to remove what nobody wants any more.
    fix: bool = False


def examine_nodes(test: NodeTest, root: Root, tell: Callable[[str], object] = bool) -> list[Finding]:
    """Return what was found; each finding is one thing that was tested.

    Args:
        root: Where workers would be; it need not be there yet.
        tell: Called with what is being waited for.

    Raises:
        UsageError, NotFound: Such a test cannot be.
        Refused: The caller is a worker.
    """
    worker = shown_caller()
    if worker is not None or is_from_worker():
        raise limited(f"{worker.instance if worker else 'the caller'} is a worker: it may not test a runner", "")
    if check_runner(test.runner) == LOCAL:
        raise UsageError("the runner local has no nodes", hint=AtTerminal("agentctl doctor looks at this machine"))
    settings = section(RUNNERS).get(test.runner, {})
    asked = {"partition": test.partition, "args": list(test.args)}
    placement = Placement(**{**settings, **asked, "runner": test.runner})
    check_resources(placement)
    found = _NodeExamination(test, root, placement, tell).findings()
    return [one._replace(steps=tuple(_named(step, test.runner) for step in one.steps)) for one in found]


def _named(step: Step, runner: str) -> Step:
    """Return a next step with the name of the runner that was tested."""
    if isinstance(step, AtTerminal):
        return AtTerminal(step.text.replace("RUNNER", runner))
    return step.replace("RUNNER", runner) if isinstance(step, str) else step


class _NodeExamination:
    def __init__(self, test: NodeTest, root: Root, placement: Placement, tell: Callable[[str], object]) -> None:
        self.test, self.root, self.placement, self.tell = test, root, placement, tell
        self.runner: Runner = load(test.runner)
        self.mount = network_mount(root.path)
        self.folder = FilePath(placement.folder) if placement.folder else None
        here = root.path if root.path.is_dir() else root.path.parent
        #: Where head and node meet, and where the head's own files are or would be.
        self.base, self.here = self.folder or here, here
        self.network = hosts_for(test.network)
        self._is_silent = False

    def findings(self) -> Iterator[Finding]:
        try:
            self.runner.check(self.placement)
        except Refused as error:
            yield finding("error", error.message, "", error.steps)
            return
        if not self.base.is_dir():
            next_ = f"make it, or name another in runners.RUNNER.folder of {personal_file()}"
            yield finding("error", "the folder where head and nodes meet is not there", self.base, next_)
            return
        yield from self._engine()
        if self._is_silent:  # Each further command would wait for half a minute.
            return
        found = [*self._head(), *self._node()]
        yield from found
        yield from self._verdict(found)

    def _engine(self) -> Iterator[Finding]:
        """Yield what the engine itself is asked for."""
        exchange = self.folder / f"agentctl-{os.geteuid()}" if self.folder else None
        try:
            for remark in self.runner.remarks():
                yield finding(remark.severity, remark.what, "", remark.next)
            for probe in leftovers(self.base):
                if self.test.fix:
                    cancel_probe(self.runner, probe)
                    remove_probe(probe)
                yield finding("note", "left by a doctor that was killed", probe.path,
                              f"agentctl doctor --runner {self.test.runner} --fix", fixed=self.test.fix)  # fmt: skip
            yield from examine_strays(self.runner, self.root, exchange, fix=self.test.fix)
        except EngineDown as error:
            self._is_silent = True
            yield finding("error", f"{self.test.runner} does not answer: {error.message}", "", "try again once it does")

    def _head(self) -> Iterator[Finding]:
        """Yield what does not work here in a root on a network file system; its locks count here alone."""
        if self.mount is None:
            return
        self.tell(f"trying what {self.mount.kind} can do in {self.here}")
        problems = _tried(self.here)
        for problem in problems:
            yield finding("error", f"{problem} (tried on this machine)", self.here, _OTHER_FOLDER)
        if not problems:
            yield finding("ok", f"renames, links, locks and FIFOs work here ({self.mount.kind})", self.here)

    def _node(self) -> Iterator[Finding]:
        order = {"cwd": os.getcwd(), "programs": programs_here(), "network": self.network}
        try:
            with NodeProbe(self.runner, self.placement, self.base, self.test.limit_s) as probe:
                answer = probe.ask(order, self.tell)
        except AgentctlError as error:
            yield finding("error", error.message, self.base, error.steps)
            return
        took = f"{self.test.runner} has started a probe on {answer.node}: it was heard after {answer.started_s:.1f} s"
        yield finding("ok", took, answer.node)
        yield from self._crossing(answer)
        yield from self._program(answer)
        yield from self._work(answer)

    def _crossing(self, answer: ProbeAnswer) -> Iterator[Finding]:
        took = f"files take {answer.back_s:.2f} s to the node and back"
        if _OFTEN_AS_LONG * answer.back_s > self.placement.silence_s:
            silence = f"a node that is silent for {self.placement.silence_s:g} s is taken for lost"
            enough_s = math.ceil(_OFTEN_AS_LONG * answer.back_s + BEAT_S)
            next_ = f"set runners.RUNNER.silenceSeconds in {personal_file()} to {enough_s} or more"
            yield finding("warning", f"{took}, and {silence}: its end could be seen too late", self.base, next_)
        elif answer.back_s > _MOST_BACK_S:
            yield finding("warning", f"{took}: a cancel and an answer take that long", self.base, _OTHER_FOLDER)
        else:
            yield finding("ok", took, self.base)
        problems = answer.found.get("files") or []
        for problem in problems:
            yield finding("error", f"{problem} (tried on {answer.node})", self.base, _OTHER_FOLDER)
        if not problems:
            yield finding("ok", f"renames, links, locks and FIFOs work on {answer.node}", self.base)
        yield self._clock(answer)

    def _clock(self, answer: ProbeAnswer) -> Finding:
        clock, inexact_s = f"the clock of {answer.node}", max(0.1, answer.inexact_s)
        if abs(answer.skew_s) <= inexact_s:
            return finding("ok", f"{clock} agrees with that of this machine to {inexact_s:.1f} s", answer.node)
        skew = f"{clock} differs by {answer.skew_s:+.1f} s"
        if abs(answer.skew_s) <= _MOST_SKEW_S + inexact_s:
            return finding("ok", skew, answer.node)
        next_ = "let both follow a time server; no limit and no verdict depends on it"
        return finding("warning", f"{skew}: times of its workers are shown by that clock", answer.node, next_)

    def _program(self, answer: ProbeAnswer) -> Iterator[Finding]:
        begun, imports = answer.begun, answer.found.get("imports")
        python = f"{begun.get('python')}, Python {begun.get('pythonVersion')}"
        install = f"install the same agentctl there, at {os.path.dirname(os.path.dirname(SCRIPT))}"
        set_python = f"runners.RUNNER.python in {personal_file()} names an interpreter with its libraries"
        if imports:
            yield finding("error", f"agentctl cannot run on {answer.node}: {imports}", python, set_python)
        if begun.get("version") != agentctl.__version__:
            there = f"{answer.node} has agentctl {begun.get('version')}, but this machine has {agentctl.__version__}"
            yield finding("error", there, SCRIPT, install)
        elif begun.get("code") != code_mark():
            what = f"agentctl {agentctl.__version__} on {answer.node} is not the same code as here"
            yield finding("warning", what, SCRIPT, install)
        elif not imports:
            yield finding("ok", f"agentctl {agentctl.__version__} is on {answer.node} as it is here", python)

    def _work(self, answer: ProbeAnswer) -> Iterator[Finding]:
        """Yield what workers would miss there: their folder, their programs, the network."""
        found, here = answer.found, os.stat(os.getcwd())
        there = found.get("folder")
        if there is None or not {*there} & {here.st_ino, here.st_mtime_ns}:
            what = "is not there" if there is None else "is another folder"
            yield finding("warning", f"on {answer.node}, this folder {what}: workers begin in it", os.getcwd(),
                          "start workers from a folder that the nodes see, or name one with --cwd")  # fmt: skip
        for program in found.get("missing") or ():
            yield finding("note", f"on {answer.node}, there is no {program}: its agents cannot run there", answer.node,
                          "install it there at the same path")  # fmt: skip
        failed = found.get("unreachable") or []
        for host, why in failed:
            yield finding("warning", f"agents cannot reach {host} from {answer.node}: {why}", answer.node,
                          "choose another --partition, or set HTTPS_PROXY where you spawn")  # fmt: skip
        if reached := [host for host in self.network if host not in [name for name, _ in failed]]:
            yield finding("ok", f"{', '.join(reached)} can be reached from {answer.node}", answer.node)

    def _verdict(self, found: Sequence[Finding]) -> Iterator[Finding]:
        """Yield what follows for the root, and note that."""
        if any(one.severity == "error" for one in found):
            yield from self._rejected(found)
        elif self.mount is not None:
            yield self._accepted(self.mount)

    def _accepted(self, mount: Mount) -> Finding:
        before = acceptance_of(os.environ, self.root.path)
        accept(os.environ, self.root.path, mount, self.test.runner)
        what = f"this root on {mount.kind} is accepted for the commands of this machine"
        if before is not None and not before.is_of_this_machine:
            what += f"; those of {before.host or 'the machine that used it'} are refused from now on"
        return finding("ok", what, self.root.path)

    def _rejected(self, found: Sequence[Finding]) -> Iterator[Finding]:
        """Take an acceptance back if the file system has failed; an engine that is down proves nothing about it."""
        failed = [one for one in found if one.severity == "error" and one.next == _OTHER_FOLDER]
        if any(one.where == self.here for one in failed) and acceptance_of(os.environ, self.root.path) is not None:
            reject(os.environ, self.root.path)
            yield finding("error", "this root is no longer accepted", self.root.path, "move it to another file system")


_OTHER_FOLDER = "use another file system: runners.RUNNER.folder in config.yaml for what nodes see, --root for the rest"


def _tried(folder: FilePath) -> list[str]:
    """Return what two processes of this machine cannot do in a folder; in a process of its own, which may hang."""
    place = ProbeDir(folder / f"{ProbeDir.PREFIX}{os.urandom(8).hex()}")
    make_folders(place.path)
    try:
        done = subprocess.run(argv_of(TRIAL, str(place.trial)), capture_output=True, timeout=_TRIAL_S, check=False)
    except subprocess.TimeoutExpired:
        return [f"it has not come back within {_TRIAL_S:g} s: renames, links, locks or FIFOs hang"]
    else:
        if done.returncode:
            return [f"it could not be tried: {done.stderr.decode(errors='replace').strip()[-300:]}"]
        return [str(one) for one in json.loads(done.stdout)["problems"]]
    finally:
        remove_probe(place)

"""Whether a worker that asked a question does nothing but wait for the answer: only then does its clock stand still.

A question alone proves nothing, since it can be asked in the background. In a plain worker's tree, nothing else may be
alive than the asker, its ancestors up to the leader, and processes that only read what these print (`agentctl interact
ask | tee`). All but the asker must have slept without a moment's work; the asker may look at its files periodically.
An agent's program may have processes that live as long as it does; instead, it must have written no output. Neither
kind of worker may have used more than a negligible part of the processor.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from agentctl.adapters import processes
from agentctl.adapters.processes import Identity
from agentctl.supervision.life.process_tree import Member, ProcessTree

#: The share of one processor that a sleeping tree may use, with processes that check something periodically.
_MOST_CPU = 0.05
#: What a plain worker's askers may use of a processor: seconds to begin, then a share (4 looks a second take 0.1 %).
_ASKING_S, _ASKING_CPU = 0.1, 0.005
#: How long an agent's program counts as at work after it wrote output while its question was open.
_QUIET_S = 10.0

#: Pid and start of a process.
_Key = tuple[int, int]


class Waiting:
    """What a worker's process tree did since the last look; created when the worker becomes blocked."""

    def __init__(self, tree: ProcessTree, of_agent: bool, now: float) -> None:
        self._tree, self._of_agent = tree, of_agent
        self._looked, self._cpu = now, _cpu_of(tree.living()) if processes.LINUX else 0.0
        self._began = now
        #: The context switches of all but the askers; the processor time that the askers had used when first seen.
        self._switches: dict[_Key, int | None] = {}
        self._asking: dict[_Key, int] = {}
        self._output: int | None = None
        self._loud_until = now
        self._did_wait = False

    def look(self, now: float, askers: Collection[Identity], output: int) -> bool:
        """Return whether the worker only waited since the last look.

        Args:
            askers: The processes that wait for answers.
            output: How many bytes the worker has written so far.
        """
        if not processes.LINUX:
            return True  # There is no cheap way to see what the tree does: a question is believed.
        members = self._tree.living()
        is_quiet = self._is_quiet(now, output)
        self._did_wait = is_quiet if self._of_agent else self._sleeps(now, members, askers)
        return self._is_idle(now, members) and self._did_wait

    def end(self, now: float) -> bool:
        """Return the same once the question is over: by now the asker is gone, and its answer has been read."""
        return not processes.LINUX or (self._did_wait and self._is_idle(now, self._tree.living()))

    def _is_idle(self, now: float, members: Iterable[Member]) -> bool:
        """Return whether it hardly used the processor since the last look. If the total fell, some use was not seen."""
        cpu, before, passed = _cpu_of(members), self._cpu, now - self._looked
        self._cpu, self._looked = cpu, now
        return 0 <= cpu - before <= _MOST_CPU * passed

    def _sleeps(self, now: float, members: Collection[Member], askers: Collection[Identity]) -> bool:
        """Return whether a plain worker's tree only waits, and all but the askers slept since the last look."""
        waiting = {(asker.pid, asker.start) for asker in askers}
        before = self._switches
        self._switches = {_key(one): processes.switches_of(one.pid) for one in members if _key(one) not in waiting}
        asking = [one for one in members if _key(one) in waiting]
        used = sum(one.cpu - self._asking.setdefault(_key(one), one.cpu) for one in asking) / os.sysconf("SC_CLK_TCK")
        return (
            self._switches == before
            and None not in before.values()
            and used <= _ASKING_S + _ASKING_CPU * (now - self._began)
            and _only_waits(members, askers)
        )

    def _is_quiet(self, now: float, output: int) -> bool:
        """Return whether nothing was written lately. Output that came with the question itself does not count."""
        if self._output is not None and output != self._output:
            self._loud_until = now + _QUIET_S
        self._output = output
        return now >= self._loud_until


def _key(member: Member) -> _Key:
    return member.pid, member.start


def _cpu_of(members: Iterable[Member]) -> float:
    """Return the processor seconds that a tree has used: its living processes, and those already reaped."""
    times = os.times()  # This process reaps the orphans.
    ticks = os.sysconf("SC_CLK_TCK")
    return times.children_user + times.children_system + sum(member.cpu for member in members) / ticks


def _only_waits(members: Iterable[Member], askers: Collection[Identity]) -> bool:
    """Return whether a plain worker's tree has only askers, their ancestors, and readers of what these print."""
    others = {member.pid: member for member in members}
    line: list[int] = []
    for asker in askers:
        member = others.get(asker.pid)
        if member is not None and member.start != asker.start:
            continue
        while member is not None:
            line.append(member.pid)
            del others[member.pid]
            member = others.get(member.parent)
    return bool(line) and _only_read(list(others), line)


def _only_read(others: list[int], line: list[int]) -> bool:
    """Return whether all others read from a pipe to which a process of the line, or another reader, prints."""
    printed = {_file_of(pid, fd) for pid in line for fd in (1, 2)}
    left = others
    while left:
        readers = [pid for pid in left if _file_of(pid, 0).startswith("pipe:") and _file_of(pid, 0) in printed]
        if not readers:
            return False
        printed |= {_file_of(pid, fd) for pid in readers for fd in (1, 2)}
        left = [pid for pid in left if pid not in readers]
    return True


def _file_of(pid: int, fd: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""

"""Who is at the other end of a connection: a person's process, a worker's, or one that nobody can tell.

A server acts for the person who started it, and its token lies in a file that a worker may be able to read. So what a
worker may not do on the command line it may not have done by a server either: the proof is the same, the tree of
processes above whoever holds the other end. What cannot be proven is never taken to be a person.
"""

from __future__ import annotations

import os
from enum import Enum

from agentctl.adapters import descent, peers, processes
from agentctl.adapters.descent import Ancestry
from agentctl.adapters.peers import Address
from agentctl.errors import AgentctlError
from agentctl.lean import NamedTuple
from agentctl.operations.where.agents_above import AgentAbove, agent_in
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.lineage import shown_caller_of
from agentctl.supervision.life.strangers import seems_a_shim


class PeerKind(Enum):
    """What is known of the other end."""

    #: A process of this user that is in no worker.
    PERSON = "person"
    #: At least one of the processes that hold it is in a worker.
    WORKER = "worker"
    #: None is in a worker, but at least one is an agent's that a person has started by hand.
    AGENT = "agent"
    #: It is on another machine, or in another network namespace of this one, such as a container's.
    ELSEWHERE = "elsewhere"
    #: Its socket is another user's.
    OTHER_USER = "other user"
    #: It is on this machine, and no process that this one may look into holds it: most likely it has ended.
    GONE = "gone"
    #: This system does not say which process holds a socket.
    UNSUPPORTED = "unsupported"


class Connecting(NamedTuple):
    """The other end of a connection."""

    kind: PeerKind
    #: The worker of `WORKER`; None where its files do not say which one it is.
    worker: Caller | None = None
    #: What shows that it is an `AGENT`.
    above: AgentAbove | None = None
    #: The user of `OTHER_USER`.
    uid: int | None = None
    #: Of `GONE`: it is not gone, and a process of this user that may not be looked into can hold it, as that of an SSH
    #: server does for a tunnel. None of those is in a worker; but a worker can hide a socket where no process has it.
    is_hidden: bool = False
    #: Of such a one: a process that can hold it is the one that an SSH server has for a session of this user.
    is_tunnel: bool = False


def who_connects(peer: Address, own: Address) -> Connecting:
    """Return who is at the other end of a TCP connection; this takes milliseconds, and more where much is open.

    Args:
        peer: The address of the other end.
        own: The address of this end.
    """
    if not processes.LINUX:
        return Connecting(PeerKind.UNSUPPORTED)
    end = peers.other_end(peer, own)
    if end is None:
        return Connecting(PeerKind.GONE if peers.is_of_this_machine(peer.host) else PeerKind.ELSEWHERE)
    if end.inode == 0:
        return Connecting(PeerKind.GONE)
    holders = peers.holders_of(end.inode)
    seen = [_judged(pid, end.inode) for pid in holders.pids]
    shown = next((one for one in seen if one.kind is PeerKind.WORKER), None)
    if shown is not None:
        return shown
    if end.uid != os.geteuid():
        return Connecting(PeerKind.OTHER_USER, uid=end.uid)
    if not seen and holders.is_complete:
        return _hidden()
    kinds = {one.kind for one in seen}
    if PeerKind.GONE in kinds or not holders.is_complete:
        return Connecting(PeerKind.GONE)
    return next((one for one in seen if one.kind is PeerKind.AGENT), Connecting(PeerKind.PERSON))


def _hidden() -> Connecting:
    """Return what is known of an end that nobody seems to hold: a worker's, if a worker has a process that hides."""
    lines = list(filter(None, map(descent.ancestry_of, peers.closed_ones())))
    shown = next((one for one in map(_looked_at, lines) if one.kind is PeerKind.WORKER), None)
    return shown or Connecting(PeerKind.GONE, is_hidden=bool(lines), is_tunnel=any(map(_is_of_ssh, lines)))


#: `sshd-session` since OpenSSH 9.8.
_SSH_SERVERS = frozenset({"sshd", "sshd-session"})


def _is_of_ssh(line: Ancestry) -> bool:
    """Return whether a closed process is the one that an SSH server has for a session.

    Its name proves nothing, since each process can choose its own. But the superuser's SSH server stands above it, and
    nobody else's process above that one: nothing that this user has started does.
    """
    above = [pid for pid, _ in line[1:]]
    is_named = len(above) > 0 and all(processes.names_of(pid)[0] in _SSH_SERVERS for pid in (line[0][0], above[0]))
    return is_named and all(processes.user_of(pid) == 0 for pid in above)


def _judged(pid: int, inode: int) -> Connecting:
    """Return what one process is: `GONE` if it lets go of the socket, or if those above it keep ending meanwhile."""
    found = descent.judged(pid, _looked_at)
    if found is None or not (found.kind is PeerKind.WORKER or peers.holds(pid, inode)):
        return Connecting(PeerKind.GONE)
    return found


def _looked_at(line: Ancestry) -> Connecting:
    if not line:
        return Connecting(PeerKind.GONE)
    pid = line[0][0]
    try:
        is_below_a_shim = any(seems_a_shim(above) for above, _ in line)
        worker = _worker_at(pid, is_below_a_shim=is_below_a_shim)
        if worker is not None or is_below_a_shim:
            return Connecting(PeerKind.WORKER, worker)
        above = agent_in(line)
    except (AgentctlError, OSError):  # A worker can break every file that names it.
        return Connecting(PeerKind.GONE)
    return Connecting(PeerKind.AGENT if above is not None else PeerKind.PERSON, above=above)


def _worker_at(pid: int, *, is_below_a_shim: bool) -> Caller | None:
    try:
        return shown_caller_of(pid)
    except (AgentctlError, OSError):
        if is_below_a_shim:
            return None  # Of another user, or one that hides: a worker, whichever.
        raise

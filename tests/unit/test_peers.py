"""Checks what is read of the other end of a connection, and that what changes meanwhile is not believed."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat

import pytest

from agentctl.adapters import peers
from agentctl.adapters.peers import Address, Socket
from agentctl.operations.where import connecting
from agentctl.operations.where.connecting import Connecting, PeerKind, who_connects
from tests.chains import chain_of, end
from tests.moments import at_openings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who holds a socket")
V4, V6 = socket.AF_INET, socket.AF_INET6


def address(name: tuple[str, int]) -> Address:
    return Address(*name[:2])


@contextmanager
def connected(
    listens: str = "127.0.0.1", to: str = "127.0.0.1", family: int = V4, by: int = V4
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give both ends of a connection: the client's, and the server's."""
    with (
        socket.create_server((listens, 0), family=family, dualstack_ipv6=listens == "::") as place,
        socket.socket(by) as client,
    ):
        client.connect((to, place.getsockname()[1]))
        end, _ = place.accept()
        with end:
            yield client, end


def seen(end: socket.socket) -> tuple[Address, Address]:
    """Return what a server knows of a connection: the other address, and its own."""
    return address(end.getpeername()), address(end.getsockname())


@pytest.mark.parametrize(
    ("listens", "to", "family", "by"),
    [
        ("127.0.0.1", "127.0.0.1", V4, V4),
        ("127.0.0.2", "127.0.0.2", V4, V4),
        ("::1", "::1", V6, V6),
        ("::", "127.0.0.1", V6, V4),
        ("::", "::ffff:127.0.0.1", V6, V6),
        ("127.0.0.1", "::ffff:127.0.0.1", V4, V6),
    ],
)
def test_the_other_end_is_found(listens: str, to: str, family: int, by: int) -> None:
    with connected(listens, to, family, by) as (client, end):
        inode = os.fstat(client.fileno()).st_ino
        assert peers.other_end(*seen(end)) == Socket(inode, os.geteuid())
        assert peers.holders_of(inode) == peers.Holders([os.getpid()], is_complete=True)
        assert peers.holds(os.getpid(), inode)
        ends = seen(end)
        client.close()
        left = peers.other_end(*ends)
        assert left is None or left.inode == 0
        assert who_connects(*ends) == Connecting(PeerKind.GONE)


def test_a_search_has_an_end() -> None:
    with connected() as (client, _):
        assert not peers.holders_of(os.fstat(client.fileno()).st_ino, most=2).is_complete


def test_all_that_hold_it_are_found() -> None:
    with connected() as (client, _):
        import subprocess

        child = subprocess.Popen(["sleep", "60"], pass_fds=[client.fileno()])
        try:
            assert set(peers.holders_of(os.fstat(client.fileno()).st_ino).pids) == {os.getpid(), child.pid}
        finally:
            child.kill()
            child.wait()


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True),
        ("192.0.2.1", False), ("2001:db8::1", False), ("fe80::1%none", False),
    ],
)  # fmt: skip
def test_which_addresses_are_of_this_machine(host: str, is_here: bool) -> None:
    assert peers.is_of_this_machine(host) == is_here


def test_another_machine_is_elsewhere() -> None:
    assert who_connects(Address("192.0.2.1", 40000), Address("192.0.2.2", 443)) == Connecting(PeerKind.ELSEWHERE)


def test_who_is_below_processes_that_keep_ending_is_no_person() -> None:
    """A process that ends at the right moment would hide the shim that is above its child."""
    with connected() as (client, _), chain_of(50, [client.fileno()]) as chain:
        inode, left = os.fstat(client.fileno()).st_ino, chain[1:-1]

        def end_one() -> None:
            if left:
                end(left.pop())

        with at_openings(f"/proc/{chain[0]}/cmdline", repeat(end_one)):
            assert connecting._judged(chain[0], inode) == Connecting(PeerKind.GONE)
        assert left, "some were left that could have ended"
        assert connecting._judged(chain[0], inode).kind in (PeerKind.PERSON, PeerKind.AGENT)


def test_who_is_gone_is_no_person() -> None:
    assert connecting._judged(2**22 + 1, 1) == Connecting(PeerKind.GONE)


def test_who_lets_go_meanwhile_is_gone() -> None:
    assert connecting._judged(os.getpid(), 1).kind is PeerKind.GONE

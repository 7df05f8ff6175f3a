"""What the nodes of a cluster live in: namespaces, a network, a control group, and a number that is theirs alone.

All of it is written down before it is made, and removed by a program of its own, `guard.py`, when the pipe to that is
closed: by `remove`, or because this process has been killed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm import guard
from tests.slurm.install import SYSTEM_PATH

HEAD = "head"
SLOTS = 250
#: Nobody listens there: whoever has bound the address has the number.
CLAIM_PORT = 21300
FREEZER = Path("/sys/fs/cgroup/freezer")
COMMAND_S = 30.0
_ENTER = 'mount --bind "$0" /etc/hosts && exec "$@"'


def tracks_cgroup() -> bool:
    """Return whether nodes can track processes by control groups here: this Slurm can do it with version 1 only."""
    return os.access(FREEZER, os.W_OK) and (FREEZER / "cgroup.procs").exists()


def own_environ() -> dict[str, str]:
    """Return the environment of daemons: without what marks the processes of the test that happens to run."""
    return {"PATH": SYSTEM_PATH, "HOME": "/", "LANG": "C.UTF-8"}


def call(*argv: str) -> str:
    """Run a command that changes or shows the system, and return what it says."""
    done = subprocess.run(argv, env=own_environ(), capture_output=True, text=True, timeout=COMMAND_S, check=False)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(argv)}: {done.stderr}")
    return done.stdout


class Surroundings:
    """Of one cluster, in its folder."""

    def __init__(self, folder: Path, nodes: tuple[str, ...], *, netns: bool, cgroup: bool) -> None:
        """Take a number that no other cluster on this machine has; nothing else is made yet."""
        self.folder = folder
        self.nodes = nodes
        self.netns = netns
        #: Where Slurm finds the control groups, which is a part of those of the machine.
        self.groups = folder / "cgroup" if cgroup else None
        self._slot = -1
        self._guard = self._take_slot()

    def _take_slot(self) -> subprocess.Popen[bytes]:
        """Return the guard, which has the socket too: the number is free again only when all is removed."""
        for self._slot in range(SLOTS):
            with socket.socket() as claim:
                try:
                    claim.bind((f"127.213.{self._slot}.1", CLAIM_PORT))
                except OSError:
                    continue
                if self._is_used():
                    continue
                self._write_down()
                return self._start_guard(claim)
        pytest.fail("there are too many clusters on this machine")

    def _is_used(self) -> bool:
        """Return whether somebody else has a network like this, or a guard that was killed has left something."""
        names = [*Path("/sys/class/net").glob(f"{self._prefix}*"), *Path("/run/netns").glob(f"{self._prefix}*")]
        left = bool(names) or (FREEZER / f"{self._prefix}jobs").exists()
        return left or (self.netns and f" 10.213.{self._slot}." in call("ip", "-4", "-brief", "address"))

    def _write_down(self) -> None:
        (self.folder / guard.NAMESPACES).mkdir(parents=True, exist_ok=True)
        for place in (HEAD, *self.nodes):
            self.namespace(place).touch()
        outside = {
            "netns": [self._netns_of(node) for node in self.nodes] if self.netns else [],
            "links": [*map(self._link_of, self.nodes), self._bridge] if self.netns else [],
            "mounts": [str(self.groups / "freezer")] if self.groups else [],
            "freezer": str(self._freezer) if self.groups else None,
        }
        (self.folder / guard.OUTSIDE).write_text(json.dumps(outside), encoding="utf-8")

    def _start_guard(self, claim: socket.socket) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(self.folder)],
            cwd="/",
            env=own_environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[claim.fileno()],
            start_new_session=True,
        )

    def make(self) -> None:
        """Make the namespaces, and what else the nodes need."""
        for place in (HEAD, *self.nodes):
            call("unshare", f"--uts={self.namespace(place)}", "hostname", place)
        if self.netns:
            self._make_network()
        if self.groups is not None:
            self._freezer.mkdir()
            (self.groups / "freezer").mkdir(parents=True, exist_ok=True)
            call("mount", "--bind", str(self._freezer), str(self.groups / "freezer"))
        hosts = [f"{self.address(place)} {place}" for place in (HEAD, *self.nodes)]
        self._hosts.write_text("\n".join(["127.0.0.1 localhost", *hosts, ""]), encoding="ascii")

    def remove(self) -> None:
        """Remove all this, and every process in it; fail if something remains."""
        _, said = self._guard.communicate()
        if self._guard.returncode != 0:
            pytest.fail(said.decode(errors="replace"))

    def within(self, place: str) -> list[str]:
        """Return what comes before a command line so that it runs on a node, or on the head."""
        network = [f"--net=/run/netns/{self._netns_of(place)}"] if self.netns and place != HEAD else []
        # `ip netns exec` would mount another /sys, without the control groups.
        enter = ["nsenter", f"--uts={self.namespace(place)}", *network, "unshare", "--mount", "--propagation=slave"]
        return [*enter, "sh", "-c", _ENTER, str(self._hosts)]

    def address(self, place: str) -> str:
        """Return the address at which a node's daemon listens, or the head's."""
        host = 1 if place == HEAD else 10 + int(place[1:])
        return f"{10 if self.netns else 127}.213.{self._slot}.{host}"

    def namespace(self, place: str) -> Path:
        """Return the file that stands for a node's UTS namespace."""
        return self.folder / guard.NAMESPACES / place

    def set_link(self, node: str, state: str) -> None:
        """Set the state of the link between a node and all others: up or down."""
        assert self.netns, "only a cluster with netns can be cut"
        call("ip", "link", "set", self._link_of(node), state)

    @property
    def _prefix(self) -> str:
        return f"agsl{self._slot}-"

    @property
    def _bridge(self) -> str:
        return f"{self._prefix}br"

    @property
    def _freezer(self) -> Path:
        return FREEZER / f"{self._prefix}jobs"

    @property
    def _hosts(self) -> Path:
        return self.folder / "hosts"

    def _netns_of(self, node: str) -> str:
        return f"{self._prefix}{node}"

    def _link_of(self, node: str) -> str:
        return f"{self._prefix}v{node[1:]}"

    def _make_network(self) -> None:
        call("ip", "link", "add", self._bridge, "type", "bridge")
        call("ip", "address", "add", f"{self.address(HEAD)}/24", "dev", self._bridge)
        call("ip", "link", "set", self._bridge, "up")
        for node in self.nodes:
            name, link = self._netns_of(node), self._link_of(node)
            call("ip", "netns", "add", name)
            call("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            call("ip", "link", "set", link, "master", self._bridge, "up")
            call("ip", "-n", name, "address", "add", f"{self.address(node)}/24", "dev", "eth0")
            call("ip", "-n", name, "link", "set", "eth0", "up")
            call("ip", "-n", name, "link", "set", "lo", "up")

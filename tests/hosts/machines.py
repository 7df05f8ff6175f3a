"""Two machines on one: each is an sshd of its own on the loopback, with its own home, folder, root and keys.

The user's ssh finds them by names, as it would find others: by a configuration that a small `ssh` on PATH names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tests.fakessh import define_hosts, put_ssh
from tests.hosts.install import sshd
from tests.processes import children_of, name_of, variables_of, words_of
from tests.support import TEST_ID, Completed, environment, run, wait_until

_SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
SetEnv {variables}
"""
_SSH = """
Host {name}
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {keys}/key
  IdentitiesOnly yes
  UserKnownHostsFile {keys}/known_hosts
  HostKeyAlias {name}
  LogLevel ERROR
"""


class Machine:
    """A machine that ssh reaches by its name."""

    def __init__(self, name: str, folder: Path, program: str) -> None:
        self.name, self.folder = name, folder
        self.home, self.work, self._bin = (folder / part for part in ("home", "work", "bin"))
        for place in (self.home, self.work, self._bin, folder / "run"):
            place.mkdir(parents=True, mode=0o700)
        self.set_program(f'exec {program} "$@"')
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "host_key")]
        subprocess.run(keygen, check=True, timeout=20)
        self.port = _free_port()
        self.server: subprocess.Popen[bytes] | None = None

    def set_program(self, script: str) -> None:
        """Set what `agentctl` is there."""
        program = self._bin / "agentctl"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)

    def environ(self) -> dict[str, str]:
        """Return the variables that differ there."""
        return {
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            TEST_ID: os.environ[TEST_ID],
        }

    def start(self) -> None:
        """Start its sshd, or start it again."""
        variables = " ".join(f'"{name}={value}"' for name, value in self.environ().items())
        config = self.folder / "sshd_config"
        config.write_text(_SSHD.format(port=self.port, folder=self.folder, variables=variables), encoding="utf-8")
        log = self.folder / "sshd.log"
        argv = [str(sshd()), "-D", "-f", str(config), "-E", str(log)]
        self.server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, env=environment())
        wait_until(lambda: self._is_up(log), what=f"sshd of {self.name}")

    def _is_up(self, log: Path) -> bool:
        assert self.server is not None
        assert self.server.poll() is None, log.read_text(encoding="utf-8")
        return _answers(self.port)

    def kill(self) -> None:
        """Take the machine off the network: its sshd and the processes of its connections are killed."""
        assert self.server is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.server.pid)
            for one in [process, *self.connections()]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        self.server.wait(timeout=20)

    def connections(self) -> list[psutil.Process]:
        """Return the processes of sshd that each serve a connection."""
        assert self.server is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            return [
                one for one in children_of(psutil.Process(self.server.pid), recursive=True) if name_of(one) == "sshd"
            ]
        return []

    def far_ends(self) -> list[psutil.Process]:
        """Return the far ends that run there."""
        ends = [one for one in psutil.process_iter() if words_of(one)[-1:] == ["_far"]]
        return [one for one in ends if variables_of(one).get("HOME") == str(self.home)]

    def is_left_alone(self) -> None:
        """Wait until no far end runs there any more."""
        wait_until(self.far_ends, what=f"the far ends on {self.name} to leave", accept=lambda found: not found)

    def run(self, *args: str | Path, check: bool = True, env: Mapping[str, str | None] | None = None) -> Completed:
        """Run agentctl there without ssh, as somebody would who sits there."""
        return run(*args, check=check, cwd=self.work, env={**self.environ(), "AGENTCTL_ROOT": None, **(env or {})})


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as found:
        return found.recv(4) == b"SSH-"
    return False


@contextlib.contextmanager
def machines(folder: Path, *names: str) -> Iterator[dict[str, Machine]]:
    """Start machines, and let the user's ssh and config.yaml know them; stop them at the end."""
    keys = folder / "keys"
    keys.mkdir(parents=True, mode=0o700)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / "key")], check=True, timeout=20)
    found = {name: Machine(name, folder / name, f"{sys.executable} -m agentctl") for name in names}
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    config, known = [], []
    for machine in found.values():
        shutil.copy(keys / "key.pub", machine.folder / "authorized_keys")
        config.append(_SSH.format(name=machine.name, port=machine.port, user=user, keys=keys))
        known.append(f"{machine.name} {(machine.folder / 'host_key.pub').read_text(encoding='ascii')}")
    (keys / "known_hosts").write_text("".join(known), encoding="ascii")
    (keys / "config").write_text("\n".join(config), encoding="utf-8")
    put_ssh(folder / "client", f'exec {shutil.which("ssh")} -F {keys / "config"} "$@"')
    define_hosts({name: {"ssh": name, "folder": str(machine.work)} for name, machine in found.items()})
    with contextlib.suppress(OSError):  # Only root's sshd needs it.
        Path("/run/sshd").mkdir(mode=0o755)
    for machine in found.values():
        machine.start()
    try:
        yield found
    finally:
        for machine in found.values():
            machine.kill()

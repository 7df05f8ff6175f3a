"""At stake: what a worker may not do on the command line, it may not have done by a server either."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.adapters import peers
from agentctl.adapters.peers import Address
from agentctl.interfaces.web.connections import Bounds
from agentctl.operations.where.connecting import Connecting, who_connects
from tests import by_hand
from tests.life import kill_shims
from tests.security.identity.test_impostors import after_an_honest_start, pretends
from tests.steps import Task, new_task, spawn
from tests.support import REPOSITORY, alike, run, start_argv, wait_for_json, wait_for_text, wait_until, worker
from tests.web.bounded_server import HOST, Client, Served

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who holds a socket"),
]

#: A user who has nothing here, not even processes of tests that run at the same time.
NOBODY = 60_000 + os.getpid() % 5_000
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def served() -> Iterator[Served]:
    """Return a server that says who asks."""
    with Served(Bounds()) as server:
        yield server


@pytest.fixture
def task(root: Path) -> Task:
    """Return a task."""
    return new_task(grace=0.05)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where the answer is written."""
    return tmp_path / "answer"


def connects(served: Served, file: Path, how: str) -> list[str]:
    """Return the command of a process that asks who it is."""
    return worker("connects", served.host, served.port, file, how)


def told(file: Path) -> tuple[str, str | None]:
    """Return what the server has told: the kind, and the worker."""
    answer = wait_for_json(file)
    return answer["kind"], answer.get("worker")


# -- who is a worker ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["plainly", "bare", "away"])
def test_a_worker_is_one_however_it_asks(task: Task, served: Served, file: Path, how: str) -> None:
    spawn(connects(served, file, how), name="a")
    assert told(file) == ("WORKER", "a")
    task.ended("a")


def test_so_is_a_daemon_of_it_that_alone_holds_the_connection(task: Task, served: Served, file: Path) -> None:
    served.may_look.clear()  # While the connection is handed over, nobody might be found.
    spawn(connects(served, file, "shares"), name="a")
    wait_until(Path(f"{file}.shared").exists, what="the daemon to be alone with it")
    served.may_look.set()
    assert told(file) == ("WORKER", "a")
    task.ended("a")


def test_a_worker_without_files_is_one_too(task: Task, served: Served, file: Path) -> None:
    """Nothing says which one it is any more, but a shim is above it."""
    spawn(connects(served, file, "without-spec"), name="a")
    assert told(file) == ("WORKER", None)
    task.ended("a")


def test_so_is_one_whose_shim_was_killed(task: Task, served: Served, file: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = 'until [ -e "$0" ]; do sleep 0.02; done; exec "$@"'
    spawn(["sh", "-c", script, str(gate), *connects(served, file, "plainly")], name="a")
    kill_shims(task, "a")
    gate.touch()
    assert told(file) == ("WORKER", "a")


@pytest.mark.parametrize("environ", [{"PRETENDS_WITHOUT_SPEC": "1"}, *alike({})], ids=["no spec", "spec"])
def test_so_is_one_below_a_shim_of_its_own_making(
    task: Task, served: Served, file: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    own = tmp_path / "own"
    script = after_an_honest_start(own) + pretends(own, *connects(served, file, "bare"))
    spawn(["sh", "-c", script], *(f"--env={key}={value}" for key, value in environ.items()), name="a")
    assert told(file) == ("WORKER", "a")
    task.ended("a")


def test_who_says_to_be_a_worker_is_one(task: Task, root: Path, served: Served, file: Path) -> None:
    """Where the tree of processes shows nothing, the environment counts: a lie about that gives nobody more power."""
    spawn(["true"], "--wait", name="a")
    claim = {"AGENTCTL_ROOT": str(root), "AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": "a"}
    start_argv(connects(served, file, "plainly"), env=claim)
    assert told(file) == ("WORKER", "a")


@pytest.mark.parametrize("claim", ["../..", "nobody", "\n"])
def test_who_says_to_be_one_that_is_none_is_not(task: Task, root: Path, served: Served, file: Path, claim: str) -> None:
    start_argv(
        connects(served, file, "plainly"),
        env={"AGENTCTL_ROOT": str(root), "AGENTCTL_TASK": "t1", "AGENTCTL_INSTANCE": claim},
    )
    assert told(file) == ("PERSON", None)


def test_one_holder_in_a_worker_is_enough(task: Task, served: Served, file: Path) -> None:
    served.may_look.clear()
    with socket.socket(socket.AF_UNIX) as place:
        place.bind(f"{file}.socket")
        place.listen()
        spawn(connects(served, file, "gives"), name="a")
        giver, _ = place.accept()
        _, descriptors, _, _ = socket.recv_fds(giver, 1, 1)
        giver.close()
    with socket.socket(fileno=descriptors[0]) as given:
        given.settimeout(20)
        wait_until(lambda: served.requests, what="the request to come")
        served.may_look.set()
        wait_until(lambda: served.looks, what="the server to look")
        Path(f"{file}.go").touch()
        wait_for_json(file)
        given.sendall(b"GET /who HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: served.looks[1:], what="the server to look again")
    assert [look["kind"] for look in served.looks] == ["WORKER"] * 2, "a connection that was a worker's stays one"
    task.ended("a")


def test_a_worker_that_is_gone_is_no_person(task: Task, served: Served, file: Path) -> None:
    served.may_look.clear()
    spawn(connects(served, file, "leaves"), name="a")
    wait_for_json(file)
    wait_until(lambda: served.requests, what="the request to come")
    task.ended("a")
    served.may_look.set()
    wait_until(lambda: served.looks, what="the server to look")
    assert served.looks[0]["kind"] == "GONE"


# -- who is not --------------------------------------------------------------------------------------------------------


def test_a_persons_process_is_none(served: Served, file: Path) -> None:
    start_argv(connects(served, file, "plainly"))
    assert told(file) == ("PERSON", None)


@pytest.mark.parametrize("how", ["variable", "variable above", "name"])
def test_the_shell_of_a_persons_agent_is_told_apart(served: Served, file: Path, tmp_path: Path, how: str) -> None:
    above = {"variable": [], "variable above": by_hand.without("QWEN_CODE"), "name": by_hand.below(tmp_path, "qwen")}
    environ = {"QWEN_CODE": "1"} if how == "variable" else {}
    start_argv([*above[how], *connects(served, file, "plainly")], env=environ)
    assert told(file) == ("AGENT", None)


@pytest.mark.parametrize(("host", "family", "to"), [("::1", socket.AF_INET6, "::1"), ("::", socket.AF_INET6, HOST)])
def test_over_ipv6(file: Path, host: str, family: int, to: str) -> None:
    with Served(Bounds(), host, family) as served:
        start_argv(worker("connects", to, served.port, file, "plainly"))
        assert told(file) == ("PERSON", None)


def test_by_another_address_of_this_machine(task: Task, file: Path) -> None:
    with Served(Bounds(), "127.0.0.2") as served:
        spawn(connects(served, file, "plainly"), name="a")
        assert told(file) == ("WORKER", "a")
    task.ended("a")


def test_it_is_looked_up_once_for_a_connection(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[tuple[Address, Address]] = []

    def look(peer: Address, own: Address) -> Connecting:
        looked.append((peer, own))
        return who_connects(peer, own)

    monkeypatch.setattr("agentctl.interfaces.web.connections.who_connects", look)
    with Client(served) as client:
        client.ask("hi")
        client.answer()
        assert not looked, "only when it is asked for"
        for _ in range(3):
            client.ask("who")
            assert client.answer()[0] == 200
        assert len(looked) == 1


# -- other users -------------------------------------------------------------------------------------------------------

LOOKS = """
import os, sys
from agentctl.adapters.peers import Address
from agentctl.operations.where.connecting import who_connects
os.setuid(int(sys.argv[5]))
found = who_connects(Address(sys.argv[1], int(sys.argv[2])), Address(sys.argv[3], int(sys.argv[4])))
print(found.kind.name, found.worker, found.is_hidden, found.is_tunnel)
"""


def seen_by(uid: int, served: Served, port: int) -> str:
    """Return what another user's server would see at the other end of a connection from this port."""
    argv = [sys.executable, "-c", LOOKS, HOST, str(port), HOST, str(served.port), str(uid)]
    return subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=30).stdout.strip()


#: Connects as another user, writes its port into a file, and stays.
HIDES = """
import os, signal, socket, sys
signal.alarm(60)
os.setuid(int(sys.argv[2]))
made = socket.socket()
made.connect(("127.0.0.1", int(sys.argv[1])))
print(made.getsockname()[1], flush=True)
made.recv(1)
"""


@needs_root
def test_another_users_process_is_told_apart(served: Served, file: Path) -> None:
    client = start_argv(connects(served, file, f"as-{NOBODY}"))
    out, _ = client.communicate(timeout=30)
    assert f'"kind": "OTHER_USER", "uid": {NOBODY}' in out


@needs_root
def test_also_by_a_server_that_may_not_look_into_it(served: Served) -> None:
    with Client(served) as client:
        client.ask("hi")
        client.answer()
        assert seen_by(NOBODY, served, client.socket.getsockname()[1]).startswith("OTHER_USER")


@needs_root
def test_who_cannot_be_looked_into_is_no_person(served: Served) -> None:
    """A process that has changed its user is closed to others of that user, as any can make itself be."""
    process = start_argv([sys.executable, "-c", HIDES, str(served.port), str(NOBODY)])
    assert process.stdout is not None
    port = int(process.stdout.readline())
    assert seen_by(NOBODY, served, port) == "GONE None True False"
    assert seen_by(0, served, port).startswith("OTHER_USER")
    process.kill()
    process.communicate()


@needs_root
def test_a_worker_that_hides_is_one(task: Task, served: Served) -> None:
    spawn([sys.executable, "-c", HIDES, str(served.port), str(NOBODY)], name="a")
    port = wait_for_text(task.agent("a") / "stdout.log")
    assert seen_by(NOBODY, served, int(port)) == "WORKER None False False"
    run("cancel", "a")


# -- tunnels -----------------------------------------------------------------------------------------------------------

_SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile none
AuthorizedKeysCommand /bin/cat {folder}/user.pub
AuthorizedKeysCommandUser root
PidFile none
StrictModes no
UsePAM no
"""
#: What an SSH server is called, and has above it, made up by another user's process.
_PRETENDS = """
import ctypes, os, signal, socket, sys
signal.alarm(60)
os.setuid(int(sys.argv[2]))
libc = ctypes.CDLL(None)
libc.prctl(15, b"sshd", 0, 0, 0)
if os.fork():
    os.wait()
    sys.exit()
libc.prctl(15, b"sshd", 0, 0, 0)
libc.prctl(1, signal.SIGKILL, 0, 0, 0)
made = socket.socket()
made.connect(("127.0.0.1", int(sys.argv[1])))
libc.prctl(4, 0, 0, 0, 0)
print(made.getsockname()[1], flush=True)
made.recv(1)
"""


@pytest.fixture
def tunnel(served: Served, tmp_path: Path) -> Iterator[int]:
    """Return the port at which a tunnel of another user to the server begins."""
    if shutil.which("sshd") is None:
        pytest.skip("there is no sshd here")
    user = pwd.getpwuid(LOOKED_AT).pw_name
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    port, begin = _free_port(), _free_port()
    (tmp_path / "config").write_text(_SSHD.format(port=port, folder=tmp_path))
    Path("/run/sshd").mkdir(exist_ok=True)  # It wants it, and a package makes it only when it starts the service.
    running = [start_argv([str(shutil.which("sshd")), "-D", "-e", "-f", str(tmp_path / "config")])]
    wait_until(lambda: _listens(port), what="sshd to listen")
    options = ["StrictHostKeyChecking=no", f"UserKnownHostsFile={tmp_path}/known", f"IdentityFile={tmp_path}/user",
               "IdentitiesOnly=yes", "ExitOnForwardFailure=yes"]  # fmt: skip
    running.append(start_argv(
        ["ssh", "-N", "-F", "none", *(word for one in options for word in ("-o", one)), "-p", str(port), "-L",
         f"127.0.0.1:{begin}:127.0.0.1:{served.port}", f"{user}@127.0.0.1"]
    ))  # fmt: skip
    try:
        wait_until(lambda: _listens(begin), what="the tunnel to begin")
        yield begin
    finally:
        for process in reversed(running):
            process.terminate()
            process.communicate(timeout=20)


#: Who has a name here: an SSH server lets in nobody else.
LOOKED_AT = 65534


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _listens(port: int) -> bool:
    return bool(peers.listeners_at(port))


@needs_root
def test_a_tunnel_is_told_from_all_that_hides(served: Served, tunnel: int) -> None:
    with socket.create_connection(("127.0.0.1", tunnel), 20) as client:
        client.sendall(b"GET /hi HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        (port,) = served.peers()
        assert seen_by(LOOKED_AT, served, port) == "GONE None True True"
        assert seen_by(NOBODY, served, port).startswith("OTHER_USER")


@needs_root
def test_a_name_makes_no_tunnel(served: Served) -> None:
    process = start_argv([sys.executable, "-c", _PRETENDS, str(served.port), str(NOBODY)])
    assert process.stdout is not None
    port = int(process.stdout.readline())
    assert seen_by(NOBODY, served, port) == "GONE None True False"
    process.kill()
    process.communicate()

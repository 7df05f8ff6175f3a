"""At stake: a server says where it is to whoever may know, is open to nobody else, and stops nothing when it ends."""

from __future__ import annotations

import contextlib
import getpass
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.advice import follow
from tests.snapshots import files_with
from tests.support import run, start, wait_until, worker
from tests.web.support import Browser, Server, new_task, serving, spawned

pytestmark = pytest.mark.server

# -- its link, and its token -------------------------------------------------------------------------------------------


def test_what_it_prints(root: Path) -> None:
    with serving(root) as server:
        assert server.said.keys() == {"url", "link", "tokenFile", "root"}
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert server.said["root"] == str(root)
        assert len(server.token) == 43
        file = Path(server.said["tokenFile"])
        assert file.read_text() == f"{server.token}\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert server.get("/about").done() == {
            "version": server.get("/about").json["version"], "root": str(root), "url": server.url, "readOnly": False,
        }  # fmt: skip


def test_without_json_it_prints_the_link_alone(root: Path) -> None:
    process = start("serve", "--port", "0")
    assert process.stdout is not None
    assert process.stderr is not None
    link = process.stdout.readline().strip()
    said = "".join(process.stderr.readline() for _ in range(3))
    more = run(*re.findall(r"; agentctl (.*) prints another", said)[0].split()).out.strip()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    url, _, code = link.partition("/#")
    assert url.startswith("http://127.0.0.1:")
    assert len(code) == 38
    assert more.partition("/#")[0] == url
    assert more != link
    assert out == ""
    assert "once and within 10 minutes" in said
    assert "scripts find the token in" in said
    assert "Ctrl-C ends the server" in said
    assert "the workers go on" in err
    assert "warning" not in said + err
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.follows(
    "interfaces/commands/programs/serve._explained: agentctl serve --link",
    "interfaces/web/app.Website._log_in: agentctl serve --link",
    "interfaces/web/root_server.link_to: agentctl serve",
    "interfaces/web/root_server.PortTaken.where_pages_are_open: agentctl serve --port",
)
def test_each_way_to_a_link_opens_one(root: Path) -> None:
    """A server is begun where none runs, or elsewhere where its port is taken; its link works once."""
    run("new", "A task")
    put = {"agentctl serve": "timeout --signal=INT 4 agentctl serve"}
    refused = run("serve", "--link", check=False)
    begun = follow(refused, "agentctl serve", put={"agentctl serve": f"{put['agentctl serve']} --port 0"}, check=False)
    assert begun.out.startswith("http://")
    with serving(root) as server:
        stale = server.ask("POST", "/session", {"nonce": "0" * 22, "proof": "0" * 43}, token=None)
        assert stale.status == 401
        told = json.dumps(stale.problem)
        assert follow(told, "agentctl serve --link").out.startswith(f"{server.url}/#")
        port = server.port
    with socket.create_server(("127.0.0.1", port), reuse_port=False):
        taken = run("serve", "--port", str(port), check=False)
        command = "agentctl serve --port 0" if "agentctl serve --port 0" in taken.err else "--port 0"
        elsewhere = f"{put['agentctl serve']} --port 0"
        begun = follow(taken, command, put={command: elsewhere}, check=False)
        assert begun.out.startswith("http://")


def test_every_file_in_memory_is_private(root: Path) -> None:
    with serving(root) as server:
        for name in os.listdir(server.store):
            assert stat.S_IMODE(os.stat(server.store / name).st_mode) & 0o077 == 0, name


def test_the_token_is_in_no_file_of_the_root(root: Path) -> None:
    with serving(root) as server:
        new_task(server)
        assert files_with(root, server.token) == []


def test_a_restart_keeps_the_token(root: Path) -> None:
    with serving(root) as server:
        token, port = server.token, server.port
    with serving(root, "--port", str(port)) as again:
        assert (again.token, again.port) == (token, port)
        again.stop(signal.SIGKILL, code=-signal.SIGKILL)
    with serving(root, "--port", str(port)) as third:
        assert third.token == token


def test_a_restart_keeps_the_port(root: Path) -> None:
    port = _port_that_nothing_takes_by_chance()
    with serving(root, "--port", str(port)):
        pass
    again = Server(root)
    assert again.port == port
    again.stop()


def _port_that_nothing_takes_by_chance() -> int:
    """Return a free port outside of the range from which the system takes those of connections and of port 0."""
    for port in random.sample(range(20_000, 30_000), 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("all ports are in use")


def test_another_port_has_another_token(root: Path) -> None:
    """A page of the last server goes on asking at its port, whoever is there."""
    with serving(root) as server:
        token = server.token
    with serving(root, "--port", str(_port_that_nothing_takes_by_chance())) as again:
        assert again.token != token
    with serving(root, "--port", str(again.port), "--host", "127.0.0.2") as third:
        assert third.token != again.token


def test_one_more_link(root: Path) -> None:
    assert run("serve", "--link", check=False).code == 3
    with serving(root) as server:
        said = run("serve", "--link", "--json").json
        assert {**said, "link": ""} == {**server.said, "link": ""}
        assert Browser(server).open(said["link"]).status == 200
        assert Browser(server).open(said["link"]).status == 401
        assert Browser(server).open(server.said["link"]).status == 200
        assert run("serve", "--link", "--port", "0", check=False).code == 2
    refused = run("serve", "--link", check=False)
    assert refused.err.splitlines()[1] == "hint: agentctl serve starts one, and prints a link"


def test_a_new_token_on_demand(root: Path) -> None:
    with serving(root) as server:
        old = server.token
    with serving(root, "--new-token") as server:
        assert server.token != old
        assert server.get("/tasks", token=old).status == 401


def test_a_kept_token_that_could_be_guessed_is_not_used(root: Path) -> None:
    with serving(root) as server:
        old = server.token
        (file,) = server.store.glob("serve-*.json")
    file.write_text(json.dumps({"token": "short"}))
    with serving(root) as server:
        assert server.token != old
        assert len(server.token) == 43


# -- where it listens --------------------------------------------------------------------------------------------------


def test_the_port_is_in_use(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = run("serve", "--port", str(port), check=False)
    assert refused.code == 1
    error, hint = refused.err.splitlines()
    assert error.startswith(f"error: cannot listen on port {port} of 127.0.0.1: process {os.getpid()} (")
    assert error.endswith(f" of user {getpass.getuser()} has it")
    assert hint == "hint: --port 0 takes a free one"


def test_without_a_port_it_takes_a_free_one_if_the_usual_one_is_taken(root: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", 8932))
            other.listen()
        except OSError:
            pass  # It is taken already.
        server = Server(root)
        assert server.port != 8932
        server.stop()


def test_a_second_server_of_a_root_is_refused_with_the_url_of_the_first(root: Path) -> None:
    with serving(root) as server:
        refused = run("serve", "--port", "0", check=False)
        assert refused.code == 1
        assert f"runs already at {server.url}" in refused.err
        assert server.token not in refused.err
        assert server.get("/tasks").status == 200


def test_servers_of_two_roots(root: Path, tmp_path: Path) -> None:
    with serving(root) as one, serving(tmp_path / "other", env={"AGENTCTL_ROOT": str(tmp_path / "other")}) as two:
        assert one.token != two.token
        assert one.get("/tasks", token=two.token).status == 401
        new_task(two, "here")
        assert one.get("/tasks").done() == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "box.example"])
def test_it_is_not_open_to_others_by_accident(root: Path, host: str) -> None:
    refused = run("serve", "--port", "0", "--host", host, check=False)
    assert refused.code == 2
    assert "can be reached from other machines" in refused.err
    assert "--insecure" in refused.err


def test_open_to_others_on_purpose(root: Path) -> None:
    with serving(root, "--host", "0.0.0.0", "--insecure") as server:
        assert server.host != "0.0.0.0"
        for host in (server.host, "127.0.0.1", "localhost", "[::1]"):
            assert server.get("/tasks", {"Host": f"{host}:{server.port}"}).status == 200, host
        assert server.get("/tasks", {"Host": f"evil.example:{server.port}"}).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.0.0.9"])
def test_addresses_of_this_machine(root: Path, host: str) -> None:
    if ":" in host and not _has_ipv6():
        pytest.skip("there is no IPv6 here")
    with serving(root, "--host", host) as server:
        assert server.get("/tasks").status == 200


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    "url", ["box.example", "ftp://box.example", "https://box.example/path", "https://a b", "https://u:p@box",
            "https://box#x", "https://box?x", "https://", "https://box:99999", "https://box:x", "https://[::1"],
)  # fmt: skip
def test_an_address_that_is_none(root: Path, url: str) -> None:
    refused = run("serve", "--port", "0", "--url", url, check=False)
    assert refused.code == 2
    assert "--url" in refused.err


def test_behind_a_proxy(root: Path) -> None:
    with serving(root, "--url", "https://Box.Example/") as server:
        pass
    assert server.said["link"].startswith("https://Box.Example/#")
    port = str(_free_port())
    process = start("serve", "--port", port, "--url", "https://box.example", "--json")
    assert process.stdout is not None
    token = Path(json.loads(process.stdout.readline())["tokenFile"]).read_text().strip()
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    for host, origin, status in (
        ("box.example", "https://box.example", 200), (f"127.0.0.1:{port}", "https://box.example", 200),
        (f"127.0.0.1:{port}", f"http://127.0.0.1:{port}", 200), ("box.example:444", "https://box.example", 403),
        ("box.example", "http://box.example", 403), ("box.example", "https://evil.example", 403),
        ("box.example.evil.example", "https://box.example", 403),
    ):  # fmt: skip
        connection.request(
            "GET", "/api/v1/tasks", headers={"Host": host, "Origin": origin, "Authorization": f"Bearer {token}"}
        )
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status, (host, origin)
    connection.close()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """Return the files of a certificate for this machine, and of its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    made, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", made],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


def test_tls(root: Path, certificate: tuple[str, str]) -> None:
    made, key = certificate
    context = ssl.create_default_context(cafile=made)
    https = partial(http.client.HTTPSConnection, context=context)
    with serving(root, "--tls-cert", made, "--tls-key", key, "--host", "0.0.0.0") as server:
        assert server.url.startswith("https://")
        server.host = "127.0.0.1"
        assert server.get("/tasks", http_class=https).done() == []
        origin = {"Origin": f"http://127.0.0.1:{server.port}"}
        assert server.get("/tasks", origin, http_class=https).status == 403
        page = Browser(server, f"https://127.0.0.1:{server.port}", http_class=https)
        assert "; Secure" in page.open(server.new_link()).headers["Set-Cookie"]
        assert page.ask("GET", "/api/v1/tasks").status == 200
        assert new_task_over(server, https) == "t"


def new_task_over(server: Server, https: Callable[..., http.client.HTTPConnection]) -> str:
    """Make a task over TLS: so the server knows who is at the other end there too."""
    task_id: str = server.post("/tasks", {"title": "t"}, http_class=https).done()["taskId"]
    return task_id


def test_half_a_certificate(root: Path, certificate: tuple[str, str]) -> None:
    made, key = certificate
    assert run("serve", "--tls-cert", made, check=False).code == 2
    assert run("serve", "--tls-key", key, check=False).code == 2


@pytest.mark.parametrize("what", ["missing", "swapped", "nonsense"])
def test_a_certificate_that_is_none(root: Path, certificate: tuple[str, str], tmp_path: Path, what: str) -> None:
    made, key = certificate
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    files = {"missing": (made, str(tmp_path / "missing")), "swapped": (key, made), "nonsense": (str(nonsense), key)}[
        what
    ]
    refused = run("serve", "--port", "0", "--tls-cert", files[0], "--tls-key", files[1], check=False)
    assert refused.code == 2, refused
    assert refused.err.startswith("error: ")
    assert "hint: " in refused.err
    assert refused.out == ""


# -- how it ends -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_ends_and_no_worker_does(root: Path, number: int, code: int) -> None:
    with serving(root) as server:
        task = new_task(server)
        name = spawned(server, task, worker("sleeps", 60))
        with server.stream("?fleet=true") as stream, server.connected():
            stream.greeting()
            server.stop(number, code=code)
    assert run("show", name, "--task", task, "--json").json["status"] == "running"
    run("cancel", "--all", "--task", task)


def test_it_ends_while_somebody_waits(root: Path) -> None:
    with serving(root) as server:
        task = new_task(server)
        spawned(server, task, worker("sleeps", 60))
        with server.connected() as client:
            body = b'{"timeout_seconds": 300}'
            client.sendall(
                b"POST /api/v1/tasks/%s/wait-all HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
                b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (task.encode(), server.port, server.token.encode(), len(body), body)
            )
            # The loop and the reader have a thread each; while one waits, another request takes a fourth.
            wait_until(lambda: server.get("/tasks").status == 200 and _threads_of(server) > 3, what="the wait to begin")
            server.stop()
    run("cancel", "--all", "--task", task)


def _threads_of(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def test_killed_it_is_forgotten_at_once(root: Path) -> None:
    with serving(root) as server:
        server.stop(signal.SIGKILL, code=-signal.SIGKILL)
    with serving(root):
        pass


# -- what it needs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["starlette", "uvicorn", "sse_starlette", "segno"])
def test_a_library_is_missing(root: Path, tmp_path: Path, library: str) -> None:
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "sitecustomize.py").write_text(
        f"import importlib.util as u\nfind = u.find_spec\nu.find_spec = lambda n, *a: None if n == {library!r} else "
        "find(n, *a)\n"
    )
    refused = run("serve", "--port", "0", check=False, env={"PYTHONPATH": str(tmp_path / "shim")})
    assert refused.code == 1
    error, hint = refused.err.splitlines()
    assert error == f"error: the server needs {library}"
    assert hint.startswith(f"hint: {sys.executable} -P -m pip install 'anyio>=")
    assert not root.exists()


def test_the_other_commands_need_none_of_them(root: Path, tmp_path: Path) -> None:
    (tmp_path / "shim").mkdir()
    (tmp_path / "shim" / "sitecustomize.py").write_text(
        "import sys\nsys.modules.update(dict.fromkeys(['starlette', 'uvicorn', 'sse_starlette', 'segno', 'anyio']))\n"
    )
    for command in (["new", "t"], ["spawn", "--", "true"], ["wait-all"], ["list"], ["serve", "--help"]):
        run(*command, env={"PYTHONPATH": str(tmp_path / "shim")})


# -- the QR code -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "is_drawn"), [(["--qr"], True), ([], False)])
def test_the_qr_code_is_for_a_terminal(root: Path, options: list[str], is_drawn: bool) -> None:
    import pty

    main, side = pty.openpty()
    process = start("serve", "--port", "0", *options, stdout=side, env={"TERM": "xterm"})
    os.close(side)
    shown = b""
    while b"/#" not in shown or (is_drawn and shown.count(b"\n") < 15):
        shown += os.read(main, 1 << 16)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    os.close(main)
    assert (len([line for line in shown.splitlines() if "▀".encode() in line]) > 10) is is_drawn


def test_a_pipe_gets_no_qr_code(root: Path) -> None:
    process = start("serve", "--port", "0", "--qr")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[0] == ""

"""At stake: nothing that a clone brings or a worker writes decides what is run or where anything is sent, and nothing
secret or harmful is in what is sent.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import shlex
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters.clock import now_iso
from agentctl.domain.notice.notice_messages import message_to_test
from agentctl.domain.notice.targets import NoticeTarget
from agentctl.supervision.notify.armed import Armed
from agentctl.supervision.notify.delivery import Delivery, deliver
from tests.listener import HOST, Listener, configure
from tests.snapshots import files_with
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, alike, run, wait_until, worker

ASK = [*PROGRAM, "interact", "ask", "--kind", "input"]


@pytest.fixture
def home(root: Path, tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def listener(root: Path) -> Iterator[Listener]:
    found = Listener()
    yield found
    found.close()


def no_sender(task: Task) -> None:
    """Wait until no sender holds the lock of a task."""
    from agentctl.adapters.locks import is_alive_held

    wait_until(lambda: not is_alive_held(task.path / "sender.json"), what="the sender to leave")


def evil(touched: Path) -> dict[str, object]:
    """Return a target that leaves a file, if anybody sends to it."""
    return {"type": "command", "command": ["touch", str(touched)]}


def name_in(file: Path, targets: str) -> None:
    """Name targets in a task.yaml, as YAML."""
    before = file.read_text()
    after = before.replace("\nconfig:", f"\nconfig: {{notify: {targets}}}\n#", 1)
    assert after != before
    file.write_text(after)


# -- what a clone brings -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_clone_gains_nothing_by_anything_that_it_names_or_defines(
    root: Path, home: Path, tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(home, {"mine": {"type": "webhook", "url": listener.url()}})
    task, touched = new_task(), tmp_path / "touched"
    spawn(worker("exits", 3), name="b")
    listener.told(2)
    no_sender(task)
    clone = tmp_path / "clone" / ".agentctl"
    shutil.copytree(root, clone, ignore=shutil.ignore_patterns("control", "*.tmp"))
    section = {"hosts": [HOST], "targets": {"evil": evil(touched)}, "always": ["evil"]}
    for file in ("notify.json", "tasks/t1/notify.json", "config.yaml", "tasks/t1/config.yaml"):
        (clone / file).write_text(json.dumps({"on": ["mine", "evil"], "off": [], "notify": section, **section}))
    (clone / "tasks/t1/notices.jsonl").unlink()
    yaml = clone / "tasks/t1/task.yaml"
    yaml.write_text(f"notify: {json.dumps(section)}\n{yaml.read_text()}")
    name_in(yaml, "[mine, evil]")
    monkeypatch.setenv("AGENTCTL_ROOT", str(clone))
    rows = run("notify", "list", "--json", "--task", "t1").json
    assert [(row["target"], row["by"], row["waiting"]) for row in rows] == [("mine", None, 0)]
    for argv in (["notify", "on", "mine", "--task", "t1"], ["wait-all", "--task", "t1"]):
        assert "was not made here by you" in run(*argv, check=False).err
    for argv in (["list", "--task", "t1"], ["doctor"]):
        run(*argv)
    assert not touched.exists()
    assert (clone / "tasks/t1/sender.json").read_bytes() == (root / "tasks/t1/sender.json").read_bytes()
    assert len(listener.posts) == 2, "what the task itself had to tell, and nothing of its copy"


@pytest.mark.parametrize(
    "value",
    [
        "{evil: {type: command, command: [touch, x]}}",
        "[{type: command, command: [touch, x]}]",
        "['https://evil.example']",
    ],
)
def test_a_task_of_ones_own_cannot_define_a_target(root: Path, home: Path, value: str) -> None:
    configure(home, {})
    task = new_task()
    file = task.path / "task.yaml"
    name_in(file, value)
    done = run("spawn", "--", "true", check=False)
    assert done.code == 2
    assert f"{file}:" in done.err
    assert "notify" in done.err


def test_a_name_that_is_not_defined_tells_nobody(root: Path, home: Path) -> None:
    configure(home, {})
    task = new_task()
    file = task.path / "task.yaml"
    name_in(file, "[evil]")
    spawn(worker("exits", 3), name="b")
    task.ended("b")
    assert not (task.path / "sender.json").exists()


# -- what a worker does ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["notify on mine", "new x --notify mine", *alike("notify off mine", "notify off mine --all", "notify test mine")],
)
def test_a_worker_chooses_nothing(root: Path, home: Path, listener: Listener, line: str) -> None:
    configure(home, {"mine": {"type": "webhook", "url": listener.url()}}, always=[])
    task = new_task()
    for name, unset in (("a", []), ("b", ["env", "-u", "AGENTCTL_TASK", "-u", "AGENTCTL_INSTANCE"])):
        spawn([*unset, *PROGRAM, *line.split()], name=name)
        task.ended(name)
        exit_ = task.exit(name)
        assert exit_ is not None
        assert exit_["exitCode"] == 1
        assert "a worker may not" in (task.agent(name) / "stderr.log").read_text()
    assert not listener.posts
    assert run("notify", "list", "--json").json[0]["by"] is None
    assert not (root / "tasks" / "x").exists()


def test_a_configuration_in_another_home_of_a_worker_runs_nothing(root: Path, home: Path, tmp_path: Path) -> None:
    task, touched, other = new_task(depth=2), tmp_path / "touched", tmp_path / "other"
    configure(other, {"evil": evil(touched)})
    again = shlex.join([*PROGRAM, "spawn", "--wait", "--name", "child", "--", *worker("exits", 3)])
    spawn(["env", f"HOME={other}", "sh", "-c", f"{again}; {again.replace('child', 'other')}; exit 3"], name="parent")
    task.ended("parent", "child", "other")
    run("wait-all", check=False)
    assert not touched.exists()
    assert not (task.path / "sender.json").exists()


@pytest.mark.slow
def test_of_its_output_and_work_only_why_it_failed_is_sent(root: Path, home: Path, listener: Listener) -> None:
    configure(home, {"mine": {"type": "webhook", "url": listener.url()}})
    task = new_task()
    script = "echo hush-output; printf 'hush-error\\n3 failed, key ghp_0123456789abcdefABCD\\n' >&2; exit 3"
    run("spawn", "--name", "b", "--env", "X=hush-env", "--", "sh", "-c", script, "hush-argument")
    spawn([*ASK, "Push with ghp_0123456789abcdefABCD now?\nhush-second-line"], name="a")
    posts = listener.told(2)
    run("interact", "respond", "a", "--id", "q1", "hush-answer")
    task.ended("a")
    posts = listener.told(3)
    sent = json.dumps([*posts, [dict(one) for one in listener.headers]])
    assert "hush" not in sent
    assert "ghp_" not in sent
    assert "Push with [left out] now?" in sent
    assert "b failed (exit_code 3): 3 failed, key [left out]" in sent
    no_sender(task)


@pytest.mark.slow
@pytest.mark.parametrize(
    "question", ["\x1b]0;evil\a\x1b[2J\u202e\x9b31m" + "x " * 500, *alike("y" * 100_000, "\u202eevil\x9b31m")]
)
def test_hostile_words_are_bounded_and_clean(root: Path, home: Path, listener: Listener, question: str) -> None:
    configure(
        home, {"mine": {"type": "webhook", "url": listener.url()}, "phone": {"type": "ntfy", "url": listener.url("t")}}
    )
    run("new", f"title {question[:3000]}", "--id", "t1")
    task = Task(root / "tasks" / "t1")
    spawn([*ASK, question], name="a")
    posts = listener.told(2)
    for post in posts:
        text = json.dumps(post, ensure_ascii=False)
        assert len(text) < 1500
        assert not any(ord(one) < 0x20 or 0x7F <= ord(one) < 0xA0 or one == "\u202e" for one in text)
    run("interact", "respond", "a", "--id", "q1", "no")
    task.ended("a")
    listener.told(4)
    no_sender(task)


@pytest.mark.slow
def test_a_log_of_a_worker_that_forges_it_hangs_no_sender(root: Path, home: Path, listener: Listener) -> None:
    configure(home, {"mine": {"type": "webhook", "url": listener.url(), "events": ["blocked", "failed"]}})
    task = new_task()
    event = {"ts": "2999-01-01T00:00:00.000Z", "type": "agent.blocked", "taskId": "t1", "agentInstance": "a", "by": "a"}
    lines = [json.dumps({**event, "payload": {"id": f"q{n}"}}, separators=(",", ":")) for n in range(5000)]
    asked = {**event, "type": "interaction.requested", "payload": {"id": "q0", "question": "z" * 1_000_000}}
    forged, log = task.path / "forged", task.path / "events.jsonl"
    forged.write_text("\n".join([json.dumps(asked), "not json", *lines]) + "\n")
    spawn(["sh", "-c", f"cat {shlex.quote(str(forged))} >> {shlex.quote(str(log))}; sleep 2; exit 3"], name="b")
    wait_until(lambda: task.exit("b"), what="b to end")
    posts = listener.told(2)
    no_sender(task)
    assert len(listener.posts) <= 4, "thousands of questions are told together"
    assert all(len(json.dumps(post)) < 10_000 for post in posts)
    assert "failed" in json.dumps(posts)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["notices.jsonl", *alike("sender.json", "notify.json")])
def test_what_a_worker_puts_in_the_place_of_a_file_of_ours_hangs_nobody(
    root: Path, home: Path, listener: Listener, name: str
) -> None:
    configure(home, {"mine": {"type": "webhook", "url": listener.url(), "events": ["failed"]}})
    task = new_task()
    place = shlex.quote(str(task.path / name))
    spawn(["sh", "-c", f"rm -rf {place}; mkfifo {place}; sleep 2; exit 3"], name="b")
    task.ended("b")
    assert run("wait-all", check=False).code == 7
    said = run("doctor", check=False).out
    assert "a FIFO" in said
    assert name in said
    assert run("doctor", "--fix", check=False).code == 0
    spawn(worker("exits", 3), name="c")
    listener.told(1)
    wait_until(lambda: set(listener.keys()), what="both to be told", accept=lambda keys: len(keys) == 2)
    no_sender(task)


# -- where it goes -----------------------------------------------------------------------------------------------------


def sent_to(url: str, *hosts: str) -> Delivery:
    target = NoticeTarget("t", "webhook", url=url, token="tk_secret")
    return deliver(target, Armed((target,), hosts or (HOST, "localhost")), message_to_test("t", now_iso()))


def test_no_redirect_is_followed(listener: Listener) -> None:
    other = Listener()
    try:
        listener.statuses, listener.more = [307], {"Location": other.url()}
        found = sent_to(listener.url())
        assert (found.step, found.said) == ("refused", "HTTP 307 Temporary Redirect")
        assert not other.posts
    finally:
        other.close()


@pytest.mark.parametrize("url", ["http://{0}:{1}/", "https://{0}:{1}/"])
def test_only_hosts_on_the_list_are_told(listener: Listener, url: str) -> None:
    assert sent_to(url.format(HOST, listener.port), "ntfy.sh").step == "refused"
    assert not listener.posts


def test_nothing_goes_unencrypted_to_another_machine() -> None:
    found = sent_to("http://ntfy.sh/x", "ntfy.sh")
    assert (found.step, found.said) == ("refused", "ntfy.sh is not a host that may be told")


#: The parser of the standard library raises a TypeError here.
ODD_HEADERS = {"Content-Type": "multipart/mixed; boundary*=a; boundary*0*=b"}


def test_an_answer_that_breaks_the_parser_is_a_failure_like_any_other(listener: Listener) -> None:
    listener.more = ODD_HEADERS
    found = sent_to(listener.url())
    assert (found.step, found.maybe) == ("failed", True)
    assert found.said.startswith(f"{HOST}: ")
    assert sent_to("http://127.0.0.1:port/").step == "failed"


@pytest.mark.slow
def test_a_sender_pauses_after_an_answer_that_breaks_the_parser(root: Path, home: Path, listener: Listener) -> None:
    listener.more = ODD_HEADERS
    configure(home, {"mine": {"type": "webhook", "url": listener.url(), "events": ["failed"]}})
    assert f"not delivered ({HOST}: " in run("notify", "test", "mine", check=False).out
    task = new_task()
    began = time.monotonic()
    spawn(worker("exits", 3), name="b")
    listener.told(3)
    assert time.monotonic() - began >= 1, "the second came after a pause"
    listener.more = {}
    no_sender(task)
    assert [post["repeated"] for post in listener.posts[1:3]] == [False, True]
    assert len(listener.posts) <= 4


@pytest.mark.parametrize("drip", [b"HTTP/1.1 100 Continue\r\n\r\n", *alike(b"x", b"HTTP/1.1 200 OK\r\nx: ")])
def test_a_server_that_drips_its_answer_is_given_up(drip: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentctl.supervision.notify.delivery.HTTP_S", 0.5)
    is_over = threading.Event()
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                while not is_over.wait(0.02):
                    connection.sendall(drip)

        thread = threading.Thread(target=serve)
        thread.start()
        before = threading.active_count()
        found = sent_to(f"http://{HOST}:{server.getsockname()[1]}/")
        is_over.set()
        thread.join()
    assert (found.step, found.maybe) == ("failed", True)
    assert found.said == f"{HOST}: no whole answer within 0.5 s"
    assert threading.active_count() < before, "the request has ended too"


@pytest.mark.parametrize("length", ["", "Content-Length: 9000\r\n"])
def test_what_a_server_has_accepted_is_sent_although_its_answer_never_ends(
    length: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.supervision.notify.delivery.HTTP_S", 0.3)
    is_over, before = threading.Event(), threading.active_count()
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode())
                is_over.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        found = sent_to(f"http://{HOST}:{server.getsockname()[1]}/")
        is_over.set()
        thread.join()
    assert (found.step, found.said) == ("sent", "HTTP 200 OK")
    assert threading.active_count() == before, "the request has ended too"


def test_what_is_still_connecting_when_it_is_given_up_sends_nothing(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentctl.supervision.notify.delivery.HTTP_S", 0.05)
    monkeypatch.setattr("agentctl.supervision.notify.delivery._GRACE_S", 0.05)
    may_resolve, connect, before = threading.Event(), socket.create_connection, threading.active_count()

    def slow(*args: Any, **more: Any) -> socket.socket:
        may_resolve.wait(10)
        return connect(*args, **more)

    monkeypatch.setattr(socket, "create_connection", slow)
    found = sent_to(listener.url())
    assert (found.step, found.maybe) == ("failed", False)
    may_resolve.set()
    wait_until(threading.active_count, what="the request to end", accept=lambda now: now == before)
    assert not listener.posts


def test_a_server_that_cannot_prove_its_name_gets_nothing(tmp_path: Path) -> None:
    seen: list[bytes] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path))
    with socket.create_server((HOST, 0)) as server:
        server.settimeout(10)

        def serve() -> None:
            plain, _ = server.accept()
            try:
                with context.wrap_socket(plain, server_side=True) as encrypted:
                    seen.append(encrypted.recv(1000))
            except OSError:
                pass  # It refused the certificate.

        thread = threading.Thread(target=serve)
        thread.start()
        found = sent_to(f"https://localhost:{server.getsockname()[1]}/")
        thread.join()
    assert (found.step, found.maybe) == ("failed", False)
    assert "certificate" in found.said.lower()
    assert not b"".join(seen)


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Return a certificate for localhost that nobody vouches for, and its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")]),
    )
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files


def test_a_configuration_that_others_can_write_defines_nothing(root: Path, home: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    configure(home, {"desk": evil(touched)}).chmod(0o666)
    task = new_task()
    spawn(worker("exits", 3), name="b")
    task.ended("b")
    done = run("notify", "list", check=False)
    assert done.code == 2
    assert "others can write it" in done.err
    assert "others can write it" in run("doctor", check=False).out
    assert not touched.exists()


def test_the_tokens_are_private_and_in_memory(root: Path, home: Path, tmp_path: Path, listener: Listener) -> None:
    configure(home, {"mine": {"type": "webhook", "url": listener.url(), "token": "tk_secret", "events": ["limit"]}})
    task = new_task()
    spawn(worker("exits", 3), name="b")
    task.ended("b")
    no_sender(task)
    holding = files_with(tmp_path, "tk_secret")
    assert {file.parent.name for file in holding} == {"agentctl"}
    assert {file.stat().st_mode & 0o777 for file in holding} == {0o600}
    assert not [file for file in holding if file.is_relative_to(root)]
    assert "tk_secret" not in run("notify", "list", "--json").out + run("doctor", check=False).out

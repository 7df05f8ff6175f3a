"""At stake: whatever clients do, or do not do, costs the server little, and others are answered."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import random
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from agentctl.interfaces.web.connections import Bounds
from tests.support import alike, start_argv, wait_until
from tests.web.bounded_server import CHUNK, SHORT, Client, Served, answer_of, many

pytestmark = pytest.mark.server

#: How much later than it must a busy machine may do something.
LATE_S = 3


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """Return a server with short bounds, which the tests of this file share."""
    with Served(SHORT) as server:
        yield server


@pytest.fixture
def own() -> Iterator[Served]:
    """Return a server of its own: one whose counts count."""
    with Served(SHORT) as server:
        yield server


# -- requests ----------------------------------------------------------------------------------------------------------


def test_requests_follow_each_other_on_a_connection(served: Served) -> None:
    with Client(served) as client:
        for _ in range(3):
            client.ask("hi")
            assert client.answer() == (200, b"hi")


def test_it_says_the_date_and_not_what_it_is(served: Served) -> None:
    with Client(served) as client:
        client.ask("hi", "Connection: close\r\n")
        head = client.rest().lower()
    assert b"\r\ndate: " in head
    assert b"uvicorn" not in head
    assert b"\r\nserver:" not in head


def test_requests_in_one_piece_are_answered_in_their_order(served: Served) -> None:
    with Client(served) as client:
        one = b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
        client.send(b"".join(one % (size, b"y" * size) for size in range(1, 8)) + b"GET /hi HTTP/1.0\r\n\r\n")
        found = client.rest()
    bodies = [part.rpartition(b"\r\n\r\n")[2] for part in found.split(b"HTTP/1.1 200 OK")[1:]]
    assert bodies == [b"%d" % size for size in range(1, 8)] + [b"hi"]


def test_chunked_bodies(served: Served) -> None:
    with Client(served) as client:
        client.ask("size", "Transfer-Encoding: chunked\r\n", "POST")
        for _ in range(3):
            client.send(b"4\r\nabcd\r\n")
        client.send(b"0\r\n\r\n")
        assert client.answer() == (200, b"12")
        client.ask("hi")
        assert client.answer() == (200, b"hi")


def test_a_client_that_waits_to_be_told_to_go_on_is_told(served: Served) -> None:
    with Client(served) as client:
        client.ask("size", "Content-Length: 3\r\nExpect: 100-continue\r\n", "POST")
        assert client.read().startswith(b"HTTP/1.1 100")
        client.send(b"abc")
        assert client.answer() == (200, b"3")


def test_no_other_protocol_is_spoken(served: Served) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"
    assert answer_of(served, "hi", upgrade) == (200, b"hi")
    assert answer_of(served, "hi", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n") == (200, b"hi")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /hi HTTP/1.1\r\n\r\n", 400),  # No Host.
        (b"GET /hi HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS.
        (b"GET /hi HTTP/1.1 x\r\nHost: x\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /hi HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n", 400),
        (b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
        (b"GET /hi HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_what_is_no_request_is_refused(served: Served, sent: bytes, status: int) -> None:
    with Client(served) as client:
        client.send(sent)
        found = client.rest()
    assert found.startswith(b"HTTP/1.1 %d " % status)
    assert answer_of(served, "hi") == (200, b"hi")


@pytest.mark.parametrize("line", [b"A: " + b"x" * 2**20, b"\r\n".join([b"Cookie: abcdefgh=ijklmnop"] * 40_000)])
def test_a_header_is_bounded(own: Served, line: bytes) -> None:
    with Client(own) as client:
        client.send(b"GET /hi HTTP/1.1\r\nHost: x\r\n" + line + b"\r\n\r\n")
        assert client.answer()[0] == 431
    assert own.requests == 0


def test_a_header_of_the_usual_size_is_not(served: Served) -> None:
    assert answer_of(served, "hi", f"Cookie: {'x' * 30_000}\r\n") == (200, b"hi")


# -- times -------------------------------------------------------------------------------------------------------------


def test_dripping_bytes_do_not_put_off_the_end_of_a_header(own: Served) -> None:
    with Client(own) as client:
        client.send(b"GET /hi HTTP/1.1\r\nHost: x\r\nA: ")
        assert SHORT.header_s <= client.drip() + 0.1 < SHORT.header_s + SHORT.linger_s + LATE_S
    wait_until(lambda: own.connections.open, accept=lambda left: left == 0, what="it to be closed")
    assert own.connections.timed_out == 1


def test_a_client_is_told_that_it_was_too_slow(served: Served) -> None:
    with Client(served) as client:
        client.send(b"GET /hi HTTP/1.1\r\nHost: x\r\nA: ")
        assert client.answer()[0] == 408


def test_who_says_nothing_is_closed(served: Served) -> None:
    with Client(served) as client:
        assert client.rest() == b""


def test_an_idle_connection_is_closed_and_not_while_it_is_used(served: Served) -> None:
    with Client(served) as client:
        begun = time.monotonic()
        while time.monotonic() - begun < 3 * SHORT.keep_alive_s:
            client.ask("hi")
            assert client.answer() == (200, b"hi")
        begun = time.monotonic()
        assert client.rest() == b""
        assert SHORT.keep_alive_s - 0.1 < time.monotonic() - begun < SHORT.keep_alive_s + LATE_S


def test_the_header_of_a_later_request_has_its_time_too(served: Served) -> None:
    with Client(served) as client:
        client.ask("hi")
        assert client.answer() == (200, b"hi")
        client.send(b"GET /hi HTTP/1.1\r\nA: ")
        assert client.drip() < SHORT.header_s + SHORT.linger_s + LATE_S


def test_a_body_that_does_not_come_is_not_waited_for(own: Served) -> None:
    with Client(own) as client:
        client.ask("size", "Content-Length: 10\r\n", "POST")
        client.send(b"abc")
        assert client.rest() == b""
    wait_until(lambda: own.broken, what="the application to know")
    assert own.connections.timed_out == 1


def test_a_body_that_drips_is_not_waited_for(own: Served) -> None:
    with Client(own) as client:
        client.ask("size", "Content-Length: 100000\r\n", "POST")
        assert client.drip() < SHORT.body_s + LATE_S
    wait_until(lambda: own.broken, what="the application to know")


def test_a_body_that_flows_has_an_end_all_the_same(own: Served) -> None:
    with Client(own) as client:
        client.ask("size", "Transfer-Encoding: chunked\r\n", "POST")
        took = client.drip(b"64\r\n" + b"x" * 100 + b"\r\n")
        assert SHORT.body_s - 0.1 <= took < SHORT.body_s + SHORT.linger_s + LATE_S
    wait_until(lambda: own.broken, what="the application to know")


def test_nor_does_one_that_nobody_reads_go_on_for_ever(served: Served) -> None:
    with Client(served) as client:
        client.ask("unread", "Transfer-Encoding: chunked\r\n", "POST")
        assert client.answer() == (401, b"no")
        assert client.drip(b"64\r\n" + b"x" * 100 + b"\r\n") < SHORT.body_s + LATE_S


def test_after_such_a_body_the_connection_can_be_used(served: Served) -> None:
    with Client(served) as client:
        client.ask("unread", "Content-Length: 200000\r\n", "POST")
        assert client.answer() == (401, b"no")
        client.send(b"x" * 200_000)
        client.ask("hi")
        assert client.answer() == (200, b"hi")
        assert client.rest() == b"", "and is idle then"


def test_the_application_may_take_its_time(served: Served) -> None:
    ended = served.ended
    with Client(served) as client:
        client.ask("never")
        client.socket.settimeout(3 * max(SHORT.header_s, SHORT.keep_alive_s, SHORT.body_s))
        with pytest.raises(TimeoutError):
            client.read()
    wait_until(lambda: served.ended > ended, what="the application to know that the client is gone")


def test_who_closes_its_side_is_gone(served: Served) -> None:
    ended = served.ended
    with Client(served) as client:
        client.ask("never")
        client.socket.shutdown(socket.SHUT_WR)
        assert client.rest() == b""
    wait_until(lambda: served.ended > ended, what="the application to know")


@pytest.mark.parametrize("path", ["never", "ticks"])
def test_who_is_gone_is_noticed_behind_what_it_has_sent_ahead(own: Served, path: str) -> None:
    with Client(own) as client:
        for _ in range(3):
            client.ask(path)
    wait_until(lambda: own.connections.open, accept=lambda left: left == 0, what="it to be closed")
    wait_until(lambda: own.ended, what="the application to know")


def test_what_is_sent_ahead_is_bounded(own: Served) -> None:
    with Client(own) as client:
        client.ask("never")
        client.send(b"GET /hi HTTP/1.1\r\nHost: x\r\n\r\n" * 10_000)
        assert client.rest() == b""
    wait_until(lambda: own.ended, what="the application to know")
    assert own.connections.timed_out == 1


# -- what is not read --------------------------------------------------------------------------------------------------


def test_who_does_not_read_costs_little_and_is_ended(own: Served) -> None:
    with Client(own, receive_buffer=4096) as client:
        client.ask("endless")
        before = psutil.Process().memory_info().rss
        begun, answered = time.monotonic(), 0
        while not own.ended:
            assert time.monotonic() - begun < SHORT.stalled_s * 1.5 + LATE_S
            assert answer_of(own, "hi") == (200, b"hi")
            answered += not own.ended
        assert answered > 0, "others are answered meanwhile"
        assert time.monotonic() - begun > SHORT.stalled_s - 0.3
        assert own.chunks * len(CHUNK) < 2**20, "as much as the buffers hold"
        assert psutil.Process().memory_info().rss - before < 16 * 2**20
        assert own.connections.timed_out == 1


def test_who_reads_slowly_is_not(served: Served) -> None:
    with Client(served, receive_buffer=4096) as client:
        client.ask("endless")
        begun, got = time.monotonic(), 0
        client.socket.settimeout(10)
        while time.monotonic() - begun < 2 * SHORT.stalled_s:
            data = client.socket.recv(4096)
            assert data
            got += len(data)
            time.sleep(0.01)  # This client is slower than the server, and that is all.
    assert got > 0


def test_a_stream_that_is_read_outlives_every_time(served: Served) -> None:
    with Client(served) as client:
        client.ask("ticks")
        begun = time.monotonic()
        while time.monotonic() - begun < 2 * max(SHORT.stalled_s, SHORT.body_s):
            assert client.read()


def test_an_answer_that_is_not_read_to_its_end_is_dropped(own: Served) -> None:
    """Also once the application is through with it, and the connection only waits to be rid of it."""
    with Client(own, receive_buffer=4096) as client:
        client.ask("large")
        wait_until(lambda: own.requests, what="it to be asked")
        wait_until(lambda: own.connections.open, accept=lambda left: left == 0, what="it to be ended")
        assert len(client.rest()) < 2**20
    assert own.connections.timed_out == 1


# -- many --------------------------------------------------------------------------------------------------------------


def test_idle_connections_give_way() -> None:
    with Served(Bounds()) as served, many(served, 300) as held:
        assert answer_of(served, "hi") == (200, b"hi")
        assert served.connections.timed_out == 0, "before any of them has to go"
        assert held[0].rest() == b"", "the one that has waited longest"
        held[-1].ask("hi")
        assert held[-1].answer() == (200, b"hi")
        assert served.connections.open <= Bounds().most_connections
        assert served.connections.displaced >= 45
        assert served.connections.refused == 0


def test_streams_do_not_and_who_finds_no_place_is_refused_at_once() -> None:
    with Served(SHORT._replace(most_connections=4)) as served, many(served, 4) as streams:
        for stream in streams[:3]:
            stream.ask("ticks")
            assert stream.read()
        with many(served, 20):
            for stream in streams[:3]:
                assert stream.read()
        streams[3].close()
        streams[3] = Client(served)
        streams[3].ask("ticks")
        assert streams[3].read()
        assert served.connections.in_service == 4
        with Client(served) as late:
            late.ask("hi")
            assert late.rest() == b""
            assert served.connections.in_service == 4, "before any of them has ended"
        assert served.connections.refused == 1
        streams[0].close()
        wait_until(lambda: served.connections.open, accept=lambda left: left == 3, what="a place to be free")
        assert answer_of(served, "hi") == (200, b"hi")


def test_a_refused_body_keeps_no_place() -> None:
    with Served(SHORT._replace(most_connections=2)) as served, many(served, 2) as held:
        for one in held:
            one.ask("unread", "Content-Length: 100000\r\n", "POST")
            assert one.answer() == (401, b"no")
        assert answer_of(served, "hi") == (200, b"hi")


PIECES = [
    *(
        b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n" % path
        for path in (b"hi", b"never", b"ticks", b"endless", b"large", b"no")
    ),
    *(
        b"POST /%s HTTP/1.1\r\nHost: x\r\n%s" % (path, rest)
        for path in (b"size", b"unread")
        for rest in (
            b"Content-Length: 5\r\n\r\nabcde",
            b"Content-Length: 5\r\n\r\nab",
            b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
            b"Transfer-Encoding: chunked\r\n\r\nzz",
        )
    ),
    b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD /hi HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /hi HTTP/1.0\r\n\r\n",
    b"GET /hi HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"\r\n",
    b"junk\r\n\r\n",
    b"\0\xff",
    b"x" * 40_000,
]
HASTY = Bounds(
    most_connections=6, header_s=0.05, body_s=0.1, keep_alive_s=0.05, stalled_s=0.1, linger_s=0.05,
    leave_s=0.1, kernel_buffer=16 * 1024,
)  # fmt: skip


@pytest.mark.parametrize("seed", [1, *alike(*range(2, 12))])
def test_whatever_is_sent_nothing_is_left_behind(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)
    with Served(HASTY, log_level="error") as served:
        held: list[Client] = []
        for _ in range(120):
            held.append(Client(served, receive_buffer=chance.choice([None, 4096])))
            behaves_oddly(held[-1], chance)
            if len(held) > 9:
                held.pop(0).close()
        for one in held:
            one.close()
        wait_until(lambda: served.connections.open, accept=lambda left: left == 0, what="all to be closed")
        assert answer_of(served, "hi") == (200, b"hi")
    assert not caplog.records


def behaves_oddly(client: Client, chance: random.Random) -> None:
    """Send requests, halves of them and what is none, read some of the answers, and perhaps end in some way."""
    client.socket.settimeout(0.02)
    for _ in range(chance.randint(0, 5)):
        piece = bytearray(chance.choice(PIECES))
        what = chance.random()
        if what < 0.2:
            del piece[chance.randint(0, len(piece)) :]
        elif what < 0.3:
            piece[chance.randrange(len(piece))] = chance.randrange(256)
        with contextlib.suppress(TimeoutError):
            client.send(piece)
            if chance.random() < 0.3:
                client.read()
    end = chance.random()
    if end < 0.2:
        with contextlib.suppress(OSError):
            client.socket.shutdown(socket.SHUT_WR)
    elif end < 0.3:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    elif end < 0.7:
        client.close()


# -- TLS ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a certificate for localhost and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    shape = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = tmp_path_factory.mktemp("tls") / "own.pem"
    file.write_bytes(key.private_bytes(*shape) + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture(scope="module")
def secured(certificate: Path) -> Iterator[Served]:
    """Return a server that speaks TLS."""
    with Served(SHORT, certificate=certificate, key=certificate) as server:
        yield server


@pytest.fixture(scope="module")
def tls(certificate: Path) -> ssl.SSLContext:
    """Return how a client trusts it."""
    return ssl.create_default_context(cafile=certificate)


def test_requests_over_tls(secured: Served, tls: ssl.SSLContext) -> None:
    with Client(secured, tls=tls) as client:
        for _ in range(2):
            client.ask("size", "Content-Length: 300000\r\n", "POST")
            client.send(b"x" * 300_000)
            assert client.answer() == (200, b"300000")
        client.ask("ticks")
        assert client.read()


def test_a_request_that_comes_with_the_end_of_the_handshake(secured: Served, tls: ssl.SSLContext) -> None:
    """Both in one piece: then the request is there before the connection is known to be secured."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    speaks = tls.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with Client(secured) as client:
        while True:
            try:
                speaks.do_handshake()
                break
            except ssl.SSLWantReadError:
                client.send(outgoing.read())
                incoming.write(client.read())
        speaks.write(b"GET /hi HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        client.send(outgoing.read())
        incoming.write(client.rest())
    assert speaks.read(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert speaks.read(1 << 16) == b"hi"


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_handshake_that_is_never_finished(secured: Served, sent: bytes) -> None:
    with Client(secured) as client:
        client.send(sent)
        begun = time.monotonic()
        client.rest()
        assert time.monotonic() - begun < SHORT.handshake_s + LATE_S
    wait_until(lambda: secured.connections.open, accept=lambda left: left == 0, what="it to be forgotten")


def test_they_keep_no_place(certificate: Path, tls: ssl.SSLContext) -> None:
    bounds = SHORT._replace(most_connections=8, handshake_s=30)
    with Served(bounds, certificate=certificate, key=certificate) as served, many(served, 20):
        assert answer_of(served, "hi", tls=tls) == (200, b"hi")
        assert served.connections.open <= 8
        assert served.stop() < 3, "and do not keep the server"


def test_who_does_not_read_over_tls_is_ended(certificate: Path, tls: ssl.SSLContext) -> None:
    with Served(SHORT, certificate=certificate, key=certificate) as served:
        with Client(served, tls=tls, receive_buffer=4096) as client:
            client.ask("endless")
            wait_until(lambda: served.ended, what="it to be ended")
        assert served.chunks * len(CHUNK) < 2**20
        assert served.connections.timed_out == 1


def test_no_certificate_is_told_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    with pytest.raises(ssl.SSLError):
        Served(SHORT, certificate=tmp_path / "none.pem", key=tmp_path / "none.pem")


# -- its end -----------------------------------------------------------------------------------------------------------


def test_streams_do_not_hold_up_its_end() -> None:
    with Served(Bounds()) as served, many(served, 12) as held:
        for stream in held[:5]:
            stream.ask("ticks")
            assert stream.read()
        held[5].ask("never")
        held[6].ask("size", "Content-Length: 9\r\n", "POST")
        held[7].send(b"GET /")
        wait_until(lambda: served.requests, accept=lambda count: count == 2, what="both to be asked")
        assert served.stop() < 3
        assert served.ended == 6, "and are ended in an orderly way"
        for one in held:
            one.rest()


SERVES = """
import socket, sys
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from agentctl.interfaces.web.connections import Connections, config_for, serve_connections
async def ticks(request):
    async def give():
        while True:
            yield b"tick"
            import asyncio
            await asyncio.sleep(0.01)
    return StreamingResponse(give())
place = socket.create_server(("127.0.0.1", 0))
print(place.getsockname()[1], flush=True)
try:
    serve_connections(config_for(Starlette(routes=[Route("/ticks", ticks)]), Connections()), [place])
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_without_a_word(number: int, code: int) -> None:
    server = start_argv([sys.executable, "-W", "error", "-c", SERVES], stderr=subprocess.PIPE)
    assert server.stdout is not None
    port = int(server.stdout.readline())
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(b"GET /ticks HTTP/1.1\r\nHost: x\r\n\r\n")
        while b"tick" not in client.recv(4096):
            pass
        begun = time.monotonic()
        os.kill(server.pid, number)
        _, said = server.communicate(timeout=20)
        assert time.monotonic() - begun < 3
    assert (server.returncode, said) == (code, "")


#: Sends itself a signal before it serves: while its loop is being made, or in a callback, which throws exceptions away.
IS_STOPPED_EARLY = """
import asyncio, os, socket, sys, weakref
from starlette.applications import Starlette
from agentctl.interfaces.web.connections import Connections, config_for, serve_connections

def stop(*_):
    os.kill(os.getpid(), int(sys.argv[1]))

def loop():
    stop()
    return asyncio.new_event_loop()

def begin():
    if sys.argv[2] == "begins":
        gone = {0}
        ref = weakref.ref(gone, stop)
        del gone

config = config_for(Starlette(), Connections())
if sys.argv[2] == "loop":
    config.get_loop_factory = lambda: loop
with socket.create_server(("127.0.0.1", 0)) as place:
    try:
        serve_connections(config, [place], begin)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize("when", ["begins", "loop"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_before_it_serves(number: int, code: int, when: str) -> None:
    server = start_argv([sys.executable, "-W", "error", "-c", IS_STOPPED_EARLY, str(int(number)), when])
    _, said = server.communicate(timeout=20)
    assert (server.returncode, said) == (code, "")

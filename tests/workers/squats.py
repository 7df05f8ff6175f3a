"""`squats.py PORT FILE HOW`: another user's program that waits at a port of this machine for whoever comes by.

It writes all that it gets into FILE, as raw bytes. HOW: it `answers` each request with a document that is none of any
server's, `stays` in a browser that comes by, with a page and a service worker, or passes all of it on to a PORT and
what comes back to who has asked. It prints a line once it listens.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading

import bounded

NOBODY = 65534
_ANSWER = b'{"nonce":"x","proof":"x","session":"x","page":"x","key":"00","tasks":[]}'


#: In the browser it answers each later visit to the address, and so has what is behind the `#` of a link.
_STAYS = b"""<script>navigator.serviceWorker.register("/worker.js");
navigator.serviceWorker.ready.then(() => { document.title = "stays"; })</script>"""
_WORKER = b"""self.addEventListener("fetch", (event) => event.respondWith(new Response(
  "<script>document.title = 'the squatter has ' + location.hash</script>",
  { headers: { "Content-Type": "text/html" } },
)));"""


def main() -> None:
    """Squat."""
    port, file, how = sys.argv[1:]
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    with open(file, "ab", buffering=0) as record:
        "localhost".encode("idna")  # What this loads, another user may not be able to read.
        os.setuid(NOBODY)
        place = socket.create_server(("127.0.0.1", int(port)))
        print("listens", flush=True)
        while True:
            client, _ = place.accept()
            threading.Thread(target=_serve, args=(client, record, how), daemon=True).start()


def _serve(client: socket.socket, record: object, how: str) -> None:
    with client, contextlib.suppress(OSError):
        if how in {"answers", "stays"}:
            _answer(client, record, stays=how == "stays")
        else:
            with socket.create_connection(("127.0.0.1", int(how))) as real:
                threading.Thread(target=_pass, args=(real, client, None), daemon=True).start()
                _pass(client, real, record)


def _answer(client: socket.socket, record: object, *, stays: bool) -> None:
    while piece := client.recv(1 << 16):
        record.write(piece)  # type: ignore[attr-defined]
        if b"\r\n\r\n" in piece:
            kind, body = b"application/json", _ANSWER
            if stays:
                is_worker = piece.startswith(b"GET /worker.js ")
                kind, body = (b"text/javascript", _WORKER) if is_worker else (b"text/html", _STAYS)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
            client.sendall(head + body)


def _pass(here: socket.socket, there: socket.socket, record: object) -> None:
    with contextlib.suppress(OSError):
        while piece := here.recv(1 << 16):
            if record is not None:
                record.write(piece)  # type: ignore[attr-defined]
            there.sendall(piece)
        there.shutdown(socket.SHUT_WR)


main()

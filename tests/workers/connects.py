"""`connects.py HOST PORT FILE HOW`: asks a server who it is by `GET /who`, and writes the answer into FILE.

HOW: `plainly`; `bare` of every variable; `away`, as a daemon; by a connection that it `shares` with a daemon and then
closes, whereupon there is FILE.shared; `without-spec` in its folder, and bare; it `leaves` before the answer; it
`gives` the connection also to whoever listens at FILE.socket, and lets go of its own once there is FILE.go. `as-UID`
becomes another user before.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import bounded


def main() -> None:
    """Connect as asked."""
    host, port, file, how = sys.argv[1:]
    bounded.live_at_most()
    bounded.end_quietly_on_int()
    if how in {"bare", "without-spec"}:
        if how == "without-spec":
            (Path(os.environ["AGENTCTL_AGENT_DIR"]) / "spec.json").unlink()
        os.execve(sys.executable, [sys.executable, *sys.argv[:4], "plainly"], {})
    if how.startswith("as-"):
        host.encode("idna")  # What this loads, another user may not be able to read.
        os.setuid(int(how[3:]))
    if how == "away":
        _as_a_daemon(lambda: bounded.publish(file, _answer(_asked(host, port))))
        bounded.wait_for_file(file)
        return
    asked = _asked(host, port)
    if how == "shares":
        _as_a_daemon(lambda: bounded.publish(file, _answer(asked)))
        asked.close()
        bounded.publish(f"{file}.shared", {})
        bounded.wait_for_file(file)
    elif how == "leaves":
        asked.close()
        bounded.publish(file, {})
    elif how == "gives":
        with socket.socket(socket.AF_UNIX) as to:
            to.connect(f"{file}.socket")
            socket.send_fds(to, [b"x"], [asked.fileno()])
        bounded.wait_for_file(f"{file}.go")
        asked.close()
        bounded.publish(file, {})
    elif how.startswith("as-"):
        print(json.dumps(_answer(asked)))
    else:
        bounded.publish(file, _answer(asked))


def _as_a_daemon(does: object) -> None:
    """Do something in a process that nothing ties to this one."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    bounded.live_at_most()
    assert callable(does)
    does()
    os._exit(0)


def _asked(host: str, port: str) -> socket.socket:
    made = socket.create_connection((host, int(port)), timeout=60)
    made.sendall(b"GET /who HTTP/1.1\r\nHost: x\r\n\r\n")
    return made


def _answer(asked: socket.socket) -> object:
    found = b""
    while not found.endswith(b"}"):
        more = asked.recv(4096)
        if not more:
            break
        found += more
    return json.loads(found.rpartition(b"\r\n\r\n")[2])


if __name__ == "__main__":
    main()

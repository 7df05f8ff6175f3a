"""A connection to the agentctl of a host, by the user's own ssh: its command line says where to go, never what to do.

What is to be done travels as frames on its standard input: no shell over there reads a word of it, nothing of it is
seen in a list of processes, and it may be as long as a prompt is.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from queue import Empty, SimpleQueue

import agentctl
from agentctl.adapters.clock import monotonic
from agentctl.adapters.searchpath import program_at, settled
from agentctl.domain.hosts import CommandHost
from agentctl.domain.text.plaintext import plain
from agentctl.errors import AgentctlError, UsageError
from agentctl.interfaces.hosts import frames
from agentctl.interfaces.hosts.frames import BadFrames, Frames, Greeting, Hello, frame

#: The argument with which the far end is started.
FAR_END = "_far"
#: `pip install --user` and pipx put it where a shell without a login does not look.
_FIND_IT = f"""sh -c 'PATH="$PATH:$HOME/.local/bin"; exec agentctl {FAR_END}'"""
#: ssh(1) leaves an ignored SIGINT alone, so Ctrl-C interrupts the command over there, and not the connection to it.
_UNINTERRUPTED = ("/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh")
_OPTIONS = ("-T", "-x", "-o", "RemoteCommand=none", "-o", "ClearAllForwardings=yes")
_PIECE, _MOST_SAID = 1 << 16, 1 << 12
_CLOSING_S = 3.0
#: The exit code of ssh for failures of its own, and those of shells that do not find a program.
_OF_SSH, _NOT_FOUND = 255, (126, 127)

#: Besides the frames of the far end: what ssh or a login shell says on stderr or ahead of the hello; a descriptor of
#: the caller's is readable.
SAID, READY = b"said", b"ready"


class HostError(AgentctlError):
    """A host did not do what was asked."""

    def __init__(self, message: str, hint: str | None, *, may_return: bool) -> None:
        super().__init__(message, hint)
        #: It may answer later.
        self.may_return = may_return


def link_command(host: CommandHost, *, may_prompt: bool) -> list[str]:
    """Return what is started for a host.

    Args:
        may_prompt: Somebody can type a password.

    Raises:
        UsageError: There is no ssh.
    """
    if host.destination is None:
        program = os.path.join(os.path.dirname(agentctl.__file__), "interfaces", "cli", "here.py")
        return [*_UNINTERRUPTED, sys.executable, "-P", program]
    ssh = program_at("ssh")
    if ssh is None:
        raise UsageError("there is no program 'ssh'", hint="install OpenSSH's client (openssh-client)")
    batch = () if may_prompt else ("-o", "BatchMode=yes")
    there = _FIND_IT if host.program is None else f"{host.program} {FAR_END}"
    return [*_UNINTERRUPTED, ssh, *_OPTIONS, *batch, "--", host.destination, there]


class Link:
    """The connection. It is used by one thread; `post` may be called by any, and by a handler of signals.

    Attributes:
        said: The end of what ssh and login shells have said on stderr.
    """

    def __init__(self, host: CommandHost, *, may_prompt: bool = False) -> None:
        self.host, self._may_prompt = host, may_prompt
        self.said = self._early = b""
        self._process = subprocess.Popen(
            link_command(host, may_prompt=may_prompt),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, env=settled(os.environ),
        )  # fmt: skip
        self._out, self._err = (pipe.fileno() for pipe in (self._process.stdout, self._process.stderr) if pipe)
        self._frames = Frames(frames.FROM_FAR)
        self._hello: Hello | None = None
        self._heard_at = monotonic()
        self._is_lost = False
        self._outbox: SimpleQueue[bytes | None] = SimpleQueue()
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    # -- sending ---------------------------------------------------------------------------------------------------

    def post(self, kind: bytes, content: bytes = b"") -> None:
        """Send a frame; this never waits."""
        self._outbox.put(frame(kind, content))

    def _send(self) -> None:
        """Write what was posted, and a beat where nothing was: a reader that takes its time is not silent."""
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError, ValueError):
            while (data := self._next_to_send()) is not None:
                view = memoryview(data)
                while view:
                    view = view[pipe.write(view) or 0 :]
        with contextlib.suppress(OSError, ValueError):
            pipe.close()

    def _next_to_send(self) -> bytes | None:
        try:
            return self._outbox.get(timeout=frames.BEAT_S)
        except Empty:
            # Before the hello, a login shell would read it.
            return b"" if self._hello is None else frame(frames.BEAT)

    # -- receiving -------------------------------------------------------------------------------------------------

    def greet(self, limit_s: float | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Wait for the hello; yield what is said meanwhile.

        Args:
            limit_s: By default `silentSeconds`, unless somebody may have to type a password.

        Raises:
            HostError: There is no agentctl that understands this one.
        """
        greeting = Greeting()
        if limit_s is None and not self._may_prompt:
            limit_s = self.host.silent_s
        until = None if limit_s is None else monotonic() + limit_s
        while self._hello is None:
            left = None if until is None else max(0.0, until - monotonic())
            data = b""
            for fd in self._poll((), left):
                if fd == self._err:
                    yield SAID, self._read_said()
                elif data := self._read():
                    self._hello = self._parsed(greeting, data)
                else:
                    raise self._failure()
            if not data and until is not None and monotonic() >= until:
                raise self._silent(f"within {limit_s:g} s")
        if greeting.noise:
            yield SAID, greeting.noise
        self._early = greeting.rest
        self._check(self._hello)

    def _parsed(self, greeting: Greeting, data: bytes) -> Hello | None:
        try:
            return greeting.feed(data)
        except BadFrames as error:
            raise self._odd(error) from error

    def _check(self, hello: Hello) -> None:
        if hello.protocol != frames.PROTOCOL:
            raise HostError(
                f"agentctl {hello.version} on {self.name} and {agentctl.__version__} here do not understand each other",
                "install the same version on both",
                may_return=False,
            )

    def other_version(self) -> str | None:
        """Return a warning if the versions differ."""
        if self._hello is None or self._hello.version == agentctl.__version__:
            return None
        return f"{self.name} has agentctl {self._hello.version}, and this is {agentctl.__version__}"

    def receive(self, others: Iterable[int] = (), at_most_s: float | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Wait until something comes, and yield it: frames of the far end, `SAID`, and `READY` if one of `others` is.

        Nothing is yielded if nothing came within `at_most_s`.

        Raises:
            HostError: The connection is gone, or the host is silent.
        """
        if self._early:
            data, self._early = self._early, b""
            yield from self._framed(data)
            return
        silent_at = self._heard_at + self.host.silent_s
        limit = min(limit for limit in (at_most_s, max(silent_at - monotonic(), 0.0)) if limit is not None)
        found = self._poll(others, limit)
        for fd in found:
            if fd == self._err:
                yield SAID, self._read_said()
            elif fd == self._out:
                data = self._read()
                if not data:
                    raise self._failure()
                yield from self._framed(data)
            else:
                yield READY, b""
        if self._out not in found and monotonic() >= silent_at:
            raise self._silent(f"it has been silent for {self.host.silent_s:g} s")

    def _framed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        try:
            yield from self._frames.feed(data)
        except BadFrames as error:
            raise self._odd(error) from error

    def _poll(self, others: Iterable[int], limit_s: float | None) -> list[int]:
        poll = select.poll()
        for fd in (self._out, self._err, *others):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        return [fd for fd, _ in poll.poll(None if limit_s is None else limit_s * 1000 + 1)]

    def _read(self) -> bytes:
        self._heard_at = monotonic()
        return os.read(self._out, _PIECE)

    def _read_said(self) -> bytes:
        data = os.read(self._err, _PIECE)
        if not data:
            self._err = -1  # Closed; a master that ssh leaves behind may also keep it open for hours.
        self.said = (self.said + data)[-_MOST_SAID:]
        return data

    # -- the end ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the host, for messages."""
        return plain(self.host.name)

    def _silent(self, how: str) -> HostError:
        self._is_lost = True
        return HostError(f"{self.name} does not answer: {how}", self._look(), may_return=True)

    def _odd(self, error: BadFrames) -> HostError:
        self._is_lost = True
        message = f"{self.name} does not answer as agentctl does: {error}"
        return HostError(message, f"look at what it prints: {self._try()}", may_return=False)

    def _failure(self) -> HostError:
        """Return why the connection has ended before the command did."""
        self._is_lost = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSING_S)
        with contextlib.suppress(OSError):
            while self._err >= 0 and self._err in self._poll((), 0.0) and self._read_said():
                pass
        if self._hello is not None:
            return HostError(f"the connection to {self.name} broke", self._look(), may_return=True)
        return self._unbegun(self._process.returncode)

    def _unbegun(self, code: int | None) -> HostError:
        lines = [line for line in self.said.decode("utf-8", "replace").splitlines() if line.strip()]
        why = f": {plain(lines[-1].strip())[:300]}" if lines and not self._may_prompt else ""
        if code == _OF_SSH or code is None or code < 0:
            return HostError(f"{self.name} does not answer{why}", self._try(), may_return=True)
        if code in _NOT_FOUND:
            hint = f"install it there, or say where it is: hosts: {{{self.name}: {{ssh: ..., agentctl: /PATH}}}}"
            return HostError(f"agentctl was not found on {self.name}{why}", hint, may_return=False)
        hint = f"install this version there ({agentctl.__version__}), or look: {self._try()}"
        return HostError(f"{self.name} started no agentctl (exit code {code}){why}", hint, may_return=False)

    def _try(self) -> str:
        destination = self.host.destination
        return "agentctl doctor" if destination is None else f"ssh -T {destination} agentctl --version"

    def _look(self) -> str:
        return f"workers go on without it; once it answers: agentctl --host {self.name} list"

    def close(self, *, at_once: bool = False) -> None:
        """End the connection; the command over there ends with it, its workers do not.

        Args:
            at_once: Do not wait for what was posted to be sent.
        """
        self._outbox.put(None)
        at_once = at_once or self._is_lost
        if not at_once:
            self._sender.join(_CLOSING_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSING_S)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is None:
                self._process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_CLOSING_S)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def kill(self) -> None:
        """End the connection from another thread: what waits for it finds it broken."""
        if self._process.poll() is None:
            self._process.kill()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(at_once=kind is not None)

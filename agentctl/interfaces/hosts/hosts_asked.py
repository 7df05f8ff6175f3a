"""Asks several hosts the same thing at the same time; one that does not answer holds up nobody, and is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from agentctl.adapters.clock import monotonic
from agentctl.domain.hosts import CommandHost
from agentctl.domain.text.plaintext import plain
from agentctl.errors import ExitCode
from agentctl.interfaces.hosts import frames
from agentctl.interfaces.hosts.far_order import order_for
from agentctl.interfaces.hosts.frames import code_of
from agentctl.interfaces.hosts.host_link import HostError, Link
from agentctl.lean import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.hosts import FailedHost

#: How much a host may answer, on stdout and on stderr; and how long it may go on answering.
_MOST_OUT, _MOST_ERR, _LONGEST_S = 64 << 20, 1 << 16, 120.0


class HostAnswer(NamedTuple):
    """What became of a command on a host."""

    host: CommandHost
    code: int = ExitCode.DONE
    out: bytes = b""
    err: str = ""
    #: Why there is no answer, and the next step.
    problem: str | None = None
    hint: str | None = None
    #: The host itself answered, and refused.
    is_refusal: bool = False

    def notes(self) -> Iterator[str]:
        """Yield what the command has said on stderr, line by line."""
        yield from (line for line in map(plain, self.err.splitlines()) if line)

    def to_json(self) -> FailedHost:
        """Return what is shown in place of its rows, where there is a problem."""
        return {"host": self.host.name, "error": self.problem or "", "hint": self.hint, "exitCode": self.code}


def ask_all(hosts: Sequence[CommandHost], argv: Sequence[str], *, is_worker: bool = False) -> list[HostAnswer]:
    """Return the answer of each host to a command, in their order."""
    links: list[Link] = []
    threads = ThreadPoolExecutor(len(hosts))
    try:
        return list(threads.map(lambda host: ask_host(host, argv, is_worker=is_worker, links=links), hosts))
    except BaseException:  # Ctrl-C: nobody waits for a host that does not answer.
        for link in links:
            link.kill()
        raise
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def ask_host(
    host: CommandHost,
    argv: Sequence[str],
    *,
    limit_s: float | None = None,
    is_worker: bool = False,
    links: list[Link] | None = None,
) -> HostAnswer:
    """Return the answer of a host to a command that only has to be called.

    Args:
        limit_s: For all of it; by default `silentSeconds` to the hello.
        links: Gets the connection.
    """
    try:
        with Link(host) as link:
            if links is not None:
                links.append(link)
            return _asked(link, argv, limit_s, is_worker=is_worker)
    except HostError as error:
        return HostAnswer(host, ExitCode.REFUSED, problem=error.message, hint=error.hint)


def _asked(link: Link, argv: Sequence[str], limit_s: float | None, *, is_worker: bool) -> HostAnswer:
    for _ in link.greet(limit_s):
        pass
    link.post(frames.ORDER, order_for(link.host, argv, is_worker=is_worker).encoded())
    out, err = bytearray(), bytearray()
    warning = link.other_version()
    until = monotonic() + (_LONGEST_S if limit_s is None else limit_s)
    while (left := until - monotonic()) > 0:
        for kind, content in link.receive(at_most_s=left):
            if kind == frames.OUT:
                out += content
                if len(out) > _MOST_OUT:
                    raise HostError(f"{link.name} answers more than {_MOST_OUT} bytes", None, may_return=False)
            elif kind == frames.ERR and len(err) < _MOST_ERR:
                err += content
            elif kind == frames.WANT:
                link.post(frames.IN)
            elif kind == frames.EXIT:
                return _answer(link.host, content, bytes(out), err.decode("utf-8", "surrogateescape"), warning)
    raise HostError(f"{link.name} did not come to an end within {limit_s or _LONGEST_S:g} s", None, may_return=True)


def _answer(host: CommandHost, content: bytes, out: bytes, err: str, warning: str | None) -> HostAnswer:
    code = code_of(content)
    if code == ExitCode.DONE:
        return HostAnswer(host, code, out, err if warning is None else f"warning: {warning}\n{err}")
    problem, hint = refusal_in(err)
    if warning is not None:
        problem = f"{problem} ({warning})"
    return HostAnswer(host, code, out, err, problem or f"exit code {code}", hint, is_refusal=True)


def refusal_in(err: str) -> tuple[str, str | None]:
    """Return the error and the hint in what a command has said on stderr.

    >>> refusal_in("a note\\nerror: no task 't'\\nhint: agentctl tasks\\n")
    ("no task 't'", 'agentctl tasks')
    """
    lines = list(map(plain, err.splitlines()))
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
    return (errors or lines[-1:] or [""])[0][:500], hints[0][:500] if hints else None


def rows_in(answer: HostAnswer) -> list[Any]:
    """Return the rows that a host has answered, each with its name; what is in them is for the caller to check.

    Raises:
        ValueError: They are not rows.
    """
    try:
        rows = json.loads(answer.out)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("no list of rows")
    return [{"host": answer.host.name, **{key: value for key, value in row.items() if key != "host"}} for row in rows]

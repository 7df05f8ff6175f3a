"""Runs the server of a root: where it listens, what it is called, and who may ask it."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import pwd
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from urllib.parse import urlsplit

import anyio.to_thread
from starlette.types import Scope

from agentctl.adapters import peers, processes
from agentctl.adapters.files import write_whole
from agentctl.adapters.paths import FilePath
from agentctl.adapters.served import (
    KeptPlace,
    RootServer,
    announce,
    hold_server,
    kept_place,
    kept_token,
    live_server,
    server_file,
    spoil_place,
)
from agentctl.adapters.taskdir import Root
from agentctl.errors import Argument, AtTerminal, Refused, UsageError, WithArguments
from agentctl.interfaces.web.app import Website
from agentctl.interfaces.web.connections import OTHER_END, config_for, serve_connections
from agentctl.interfaces.web.delegation_paths import seed_endpoints
from agentctl.interfaces.web.endpoint import Endpoint
from agentctl.interfaces.web.gate import LOOPBACK, USUAL_PORTS, Access, Refusal, Refuse
from agentctl.interfaces.web.login import Login, is_token, new_link, new_token, random_text
from agentctl.interfaces.web.own_endpoints import OwnEndpoints
from agentctl.interfaces.web.several_endpoints import SeveralEndpoints
from agentctl.lean import NamedTuple
from agentctl.operations.where.connecting import Connecting, PeerKind
from agentctl.supervision.worker.environment import store_folder

DEFAULT_PORT = 8932
#: So much of a command line is told.
_SHOWN = 120
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", re.ASCII)


class ListenAddress(NamedTuple):
    """Where the server listens, and under which address browsers reach it."""

    host: str = "127.0.0.1"
    #: None takes that of the root's last server, or else the usual one, or a free one if that is in use; 0 a free one.
    port: int | None = None
    certificate: str | None = None
    key: str | None = None
    #: Where a proxy or a tunnel makes it reachable: `https://box.example`.
    url: str | None = None
    #: It may be reached from other machines without encryption.
    is_insecure: bool = False

    @property
    def is_near(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def has_tls(self) -> bool:
        """Whether it speaks TLS itself."""
        return self.certificate is not None


class Listening(NamedTuple):
    """A server that is about to run."""

    place: ListenAddress
    login: Login
    #: Where it is reached, without a slash at the end.
    url: str
    sockets: Sequence[socket.socket]
    #: Of the file that holds the token.
    token_file: str

    def new_link(self) -> str:
        """Return what a person opens: once, and soon."""
        return new_link(self.url, self.login.token, self.login.start)


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_address(place: ListenAddress) -> None:
    """Raise `UsageError` for an invalid place, or one that would be open to others without anybody having said so."""
    if (place.certificate is None) != (place.key is None):
        raise UsageError(WithArguments(Argument("tls_cert"), " and ", Argument("tls_key"), " go together"))
    if not place.is_near and not place.has_tls and not place.is_insecure:
        raise UsageError(
            f"{place.host} can be reached from other machines, and what is sent there could be read on its way",
            hint=AtTerminal(
                "--tls-cert FILE --tls-key FILE encrypts it; a tunnel needs no --host:"
                " ssh -L 8932:127.0.0.1:8932 HOST; --insecure allows it unencrypted"
            ),
        )
    if place.url is not None and not _is_address(place.url):
        raise UsageError(
            WithArguments(Argument("url"), f" {place.url!r} is not of the form https://NAME or https://NAME:PORT")
        )
    if place.certificate is not None and place.key is not None:
        _check_certificate(place.certificate, place.key)


def _is_address(url: str) -> bool:
    """Return whether browsers can be sent there: a scheme, a name and perhaps a port, and nothing else."""
    try:
        parts = urlsplit(url)
        is_plain = parts.path in {"", "/"} and not (parts.query or parts.fragment or "@" in parts.netloc)
        is_there = _HOST.fullmatch(parts.hostname or "") is not None and parts.port != 0
    except ValueError:  # The port is not a number, or a bracket is open.
        return False
    return parts.scheme in {"http", "https"} and is_plain and is_there and not url.endswith(("#", "?", ":"))


def _check_certificate(certificate: str, key: str) -> None:
    """Raise `UsageError` for files that are of no use: before a link is printed that nobody could open."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # Also ssl.SSLError.
        raise UsageError(
            f"{certificate} and {key} are not a certificate and its key: {error}",
            hint=AtTerminal(
                "--tls-cert takes a PEM file with the certificate and its chain, --tls-key its private key"
            ),
        ) from error


@contextlib.contextmanager
def listening(root: Root, place: ListenAddress, *, with_new_token: bool, is_read_only: bool) -> Iterator[Listening]:
    """Listen, and be the server of a root within the block.

    Raises:
        Refused: There is one already, or the port is taken.
    """
    folder = store_folder()
    lock = hold_server(folder, root)
    if lock is None:
        other = live_server(folder, root)
        where = f" at {other.url}" if other is not None else ""
        raise Refused(
            f"a server of {root.path} runs already{where}",
            hint=f"end it with Ctrl-C in its terminal; its token is in {server_file(folder, root, 'token')}",
        )
    sockets: list[socket.socket] = []
    file = None
    try:
        before = kept_place(folder, root)
        try:
            sockets = _listen(place, before)
        except PortTaken as error:
            if before is not None and error.port == before.port:
                spoil_place(folder, root)
                raise error.where_pages_are_open() from error
            raise
        at = KeptPlace(place.host, sockets[0].getsockname()[1])
        # A page of the last server sends what it has to whoever is at its place: the token is for that place alone.
        kept = kept_token(folder, root) if at == before and not with_new_token else None
        login = Login(kept if kept is not None and is_token(kept) else new_token(), _cookie_name(folder, root),
                      random_text(16))  # fmt: skip
        url = _url(place, at.port)
        announce(folder, root, RootServer(url, login.token, is_read_only, login.start), at)
        file = server_file(folder, root, "token")
        write_whole(file, f"{login.token}\n".encode(), durable=False)
        yield Listening(place, login, url, sockets, str(file))
    finally:
        for one in sockets:
            one.close()
        if file is not None:
            with contextlib.suppress(OSError):
                os.unlink(file)
        os.close(lock)


def _cookie_name(folder: FilePath, root: Root) -> str:
    return f"agentctl-{server_file(folder, root, 'token').name[-14:-6]}"


def link_to(root: Root) -> tuple[str, str, str]:
    """Return the address of the server of a root that runs, a new link to it, and the file of its token.

    Raises:
        Refused: None runs.
    """
    folder = store_folder()
    served = live_server(folder, root)
    if served is None:
        raise Refused(f"no server of {root.path} runs", hint=AtTerminal("agentctl serve starts one, and prints a link"))
    return served.url, new_link(served.url, served.token, served.start), str(server_file(folder, root, "token"))


def _url(place: ListenAddress, port: int) -> str:
    if place.url is not None:
        return place.url.rstrip("/")
    host = _address_of_this_machine(place.host) if _is_any(place.host) else place.host
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{'https' if place.has_tls else 'http'}://{shown}:{port}"


def _is_any(host: str) -> bool:
    return host in {"0.0.0.0", "::", "[::]", ""}  # noqa: S104 - to tell it from an address that a browser can open


def _address_of_this_machine(host: str) -> str:
    """Return the address by which other machines most likely reach this one; nothing is sent to find it out."""
    version6 = ":" in host
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_INET6 if version6 else socket.AF_INET, socket.SOCK_DGRAM) as probe,
    ):
        # Addresses for documentation (RFC 5737, RFC 3849): connecting a datagram socket only chooses the way there.
        probe.connect(("2001:db8::1" if version6 else "192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return "::1" if version6 else "127.0.0.1"


class PortTaken(Refused):
    """Somebody else has the port."""

    def __init__(self, host: str, port: int) -> None:
        self.port = port
        super().__init__(
            f"cannot listen on port {port} of {host}: {_holder_of(port)}", hint=AtTerminal("--port 0 takes a free one")
        )

    def where_pages_are_open(self) -> Refused:
        """Return the same for a port at which pages of this root's last server may be open."""
        return Refused(
            f"{self.message}; the last server of this root was there, so there is a new token now",
            hint=AtTerminal(
                f"agentctl serve --port 0 takes a free one. Do not use port {self.port} again: a page that is open"
                " there may be that process's, and a browser may show its page there later, too"
            ),
        )


def _holder_of(port: int) -> str:
    """Say who listens at a port, as far as that can be known."""
    known = peers.listeners_at(port)
    if not known:
        return "another process has it; which one cannot be told"
    pids = peers.holders_of(known[0].inode).pids
    if not pids:
        return f"a process of user {_name_of_user(known[0].uid)} has it"
    program = " ".join(processes.command_line_of(pids[0]))[:_SHOWN]
    return f"process {pids[0]} ({program}) of user {_name_of_user(processes.user_of(pids[0]))} has it"


def _name_of_user(uid: int | None) -> str:
    with contextlib.suppress(KeyError):
        return "unknown" if uid is None else pwd.getpwuid(uid).pw_name
    return str(uid)


def _listen(place: ListenAddress, before: KeptPlace | None) -> list[socket.socket]:
    """Listen at the port that was asked for; else at that of the last server of the root, so that its pages go on.

    Where somebody else has been seen there since, it is a free one, unless something else leads to that port.

    Raises:
        PortTaken: Somebody else is there, and no other port was meant.
        Refused: It cannot listen there.
    """
    host = place.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    usual = [DEFAULT_PORT, 0] if before is None else [before.port]
    if before is not None and before.is_spoiled and place.url is None:
        usual = [0]
    wanted = usual if place.port is None else [place.port]
    for port in wanted:
        try:
            found = socket.create_server((host, port), family=family, backlog=128)
            # Connections inherit it. asyncio does not set it for sockets that do not name their protocol, and without
            # it the second piece of an answer waits 40 ms, until the client has confirmed the first one.
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return [found]
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port != wanted[-1]:
                continue
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(host, port) from error
            why = str(error.strerror or error).partition(" (while ")[0]
            raise Refused(
                f"cannot listen on port {port} of {host}: {why}", hint=AtTerminal("choose another --host or --port")
            ) from error
    raise AssertionError


def access_to(place: ListenAddress, port: int, *, is_read_only: bool) -> Access:
    """Return under which names the server may be called."""
    scheme = "https" if place.has_tls else "http"
    names = set(LOOPBACK)
    if not _is_any(place.host):
        names.add(f"[{place.host.strip('[]')}]" if ":" in place.host else place.host.lower())
    hosts = {f"{name}:{port}" for name in names}
    origins = {f"{scheme}://{host}" for host in hosts}
    if port == USUAL_PORTS[scheme]:
        hosts |= names
        origins |= {f"{scheme}://{name}" for name in names}
    proxied = None
    if place.url is not None:
        parts = urlsplit(place.url.lower())
        # Browsers leave out the usual port, other programs may name it.
        name = parts.netloc.removesuffix(f":{USUAL_PORTS[parts.scheme]}")
        hosts |= (
            {name, f"{name}:{USUAL_PORTS[parts.scheme]}"} if parts.port in {None, USUAL_PORTS[parts.scheme]} else {name}
        )
        proxied = f"{parts.scheme}://{name}"
    any_address_at = port if _is_any(place.host) else None
    return Access(frozenset(hosts), frozenset(origins), any_address_at, scheme, proxied, is_read_only)


def run(
    root: Root,
    at: Listening,
    commands: Sequence[Endpoint],
    record: Callable[[BaseException], str],
    say: Callable[[], None],
    *,
    is_read_only: bool,
    force: bool,
) -> None:
    """Serve until interrupted.

    Args:
        commands: The endpoints of the commands.
        record: Records a bug; returns where.
        say: Says where it is.
    """
    own = OwnEndpoints(root, force=force, url=at.url, is_read_only=is_read_only).all()
    own += SeveralEndpoints(root, force=force).all()
    seeds, is_secure = seed_endpoints(root, force=force), at.url.startswith("https")
    site = Website(root, at.login, [*commands, *own], seeds, record, is_secure=is_secure)
    access = access_to(at.place, at.sockets[0].getsockname()[1], is_read_only=is_read_only)
    app = site.gated(access, _refusing(way_to(at.place)))
    config = config_for(app, site.connections, certificate=at.place.certificate, key=at.place.key, lifespan="on")
    try:
        serve_connections(config, at.sockets, say)
    except SystemExit:
        if site.startup_error is not None:
            raise site.startup_error from None
        raise


class Way(Enum):
    """By what else than a connection of the person's own process requests come."""

    NONE = "none"
    #: The process of an SSH server, for a session of the person.
    TUNNEL = "tunnel"
    #: A proxy, which may be another user's.
    PROXY = "proxy"


def way_to(place: ListenAddress) -> Way:
    """Return by what else requests come: by nothing where the server encrypts by itself, or has no such address."""
    if place.url is None or place.has_tls:
        return Way.NONE
    return Way.TUNNEL if is_loopback(urlsplit(place.url).hostname or "") else Way.PROXY


_COMMANDS = "use the commands or tools of agentctl, which know who calls"
_PROXY = "if that is a proxy of yours, start the server with --url ADDRESS, where the proxy makes it reachable"
_TUNNEL = "if that is a tunnel of yours, start the server with --url http://127.0.0.1:PORT, where the tunnel begins"
_WHY = {
    PeerKind.OTHER_USER: Refusal("this comes from a process of another user", _PROXY),
    PeerKind.GONE: Refusal("it is unknown which process sent this", "send it again, and wait for the answer"),
}
_HIDDEN = Refusal("this comes from a process that cannot be examined, such as one of ssh", _TUNNEL)


def _refusing(way: Way) -> Refuse:
    """Return what says why a request may not be made: whoever sent it is not a process of the person's."""

    async def why_not(scope: Scope, may_be_proxied: bool) -> Refusal | None:
        end = scope.get("state", {}).get(OTHER_END)
        found: Connecting = await anyio.to_thread.run_sync(end.look) if end is not None else Connecting(PeerKind.GONE)
        if found.kind is PeerKind.WORKER:
            who = f"{found.worker.instance} of {found.worker.task.id}" if found.worker is not None else "a worker"
            return Refusal(f"this comes from {who}: a worker does not act for the person", _COMMANDS)
        if found.kind is PeerKind.AGENT:
            return Refusal(f"this comes from an agent ({found.above}): an agent acts for itself", _COMMANDS)
        if found.is_hidden or found.kind is PeerKind.OTHER_USER:
            is_proxy = way is Way.PROXY and may_be_proxied
            is_tunnel = way is Way.TUNNEL and found.is_tunnel
            return None if is_proxy or is_tunnel else _HIDDEN if found.is_hidden else _WHY[found.kind]
        return _WHY.get(found.kind)

    return why_not

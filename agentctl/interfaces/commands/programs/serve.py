"""`serve`: what the commands do, over HTTP, and a page in the browser that shows all of it."""

from __future__ import annotations

import gc
import io
import os
import shlex
from collections.abc import Iterator

from agentctl.errors import Argument, ExitCode, Refused, UsageError, WithArguments
from agentctl.interfaces.bug_report import record_bug
from agentctl.interfaces.commands.model.command_model import FLAG, TEXT, WHOLE, Carried, Command, Parameter, Shown
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.commands.model.parameters import IN_ROOT
from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    from agentctl.domain.documents.machine import ServerLink

_ACCESS = "Access"


def serve(
    call: Invocation,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    tls_cert: str | None = None,
    tls_key: str | None = None,
    url: str | None = None,
    insecure: bool = False,
    read_only: bool = False,
    new_token: bool = False,
    link: bool = False,
    qr: bool = False,
) -> Carried[ServerLink]:
    """Serve the workers of all tasks to a browser, and over HTTP.

    Prints a link that opens once, within 10 minutes. Whoever opens it may do what you may do; --link prints another.
    Ctrl-C, or any other end of the server, stops no worker, and a page that is open goes on with the next server. The
    server is for this machine alone unless --host says otherwise. Needs the extra `serve`, and says how to install it
    where it is missing.
    """
    check_libraries()
    if link:
        if any((port, tls_cert, tls_key, url, insecure, read_only, new_token)) or port == 0 or host != "127.0.0.1":
            raise UsageError(
                WithArguments(Argument("link"), " takes no option but ", Argument("qr")),
                hint="it is about the server that is already running",
            )
        return _another_link(call, with_qr=qr)
    # A short command looks for no garbage. A server would keep each failed request, in the circle of an error and the
    # frames that it has passed.
    gc.set_threshold(10_000, 10, 10)
    from agentctl.interfaces.commands.programs.served_commands import served_commands
    from agentctl.interfaces.web.root_server import ListenAddress, check_address, listening, run

    place = ListenAddress(host, port, tls_cert, tls_key, url, insecure)
    check_address(place)
    # A root that was named is there; where none is, the page is as good a place as any to begin.
    root = call.root(create=call.root_named is None and not read_only)
    with listening(root, place, with_new_token=new_token, is_read_only=read_only) as at:

        def say() -> None:
            opens, is_near = at.new_link(), place.is_near and url is None
            # Another link in the picture: that above may be opened here.
            drawn = at.new_link() if call.draws and (qr or not is_near) else None
            notes = _explained(call, at.url, at.token_file, is_near=is_near, has_tls=place.has_tls)
            found: ServerLink = {"url": at.url, "link": opens, "tokenFile": at.token_file, "root": str(root.path)}
            call.show(Shown(found, [opens], lambda: _with_picture(opens, drawn), notes))

        try:
            run(root, at, served_commands(root, force=call.force), record_bug, say, is_read_only=read_only,
                force=call.force)  # fmt: skip
        except KeyboardInterrupt:
            call.note("the server has ended; the workers go on")
        except SystemExit as leave:  # By SIGTERM: calls that still wait in their threads do not hold up the end.
            return int(leave.code or 0)
    return ExitCode.DONE


def check_libraries() -> None:
    """Raise `Refused` if the libraries of the server are not installed."""
    from importlib.util import find_spec

    missing = [name for name in ("starlette", "uvicorn", "sse_starlette", "segno") if find_spec(name) is None]
    if missing:
        from agentctl.adapters.extras import install_command

        raise Refused(f"the server needs {', '.join(missing)}", hint=install_command("serve"))


def _another_link(call: Invocation, *, with_qr: bool) -> Shown[ServerLink]:
    """Show one more link to the server of the root."""
    from agentctl.interfaces.web.root_server import link_to

    root = call.root(create=False)
    url, opens, token_file = link_to(root)
    drawn = link_to(root)[1] if with_qr and call.draws else None
    found: ServerLink = {"url": url, "link": opens, "tokenFile": token_file, "root": str(root.path)}
    return Shown(found, [opens], lambda: _with_picture(opens, drawn))


def _explained(call: Invocation, url: str, token_file: str, *, is_near: bool, has_tls: bool) -> Iterator[str]:
    named = "" if call.root_named is None else f" --root {shlex.quote(call.root_named)}"
    yield f"open that link in a browser, once and within 10 minutes; agentctl serve{named} --link prints another"
    yield f"scripts find the token in {token_file}"
    if not is_near:
        what = "" if has_tls or url.startswith("https") else ", and what is sent can be read on its way"
        yield f"warning: other machines may reach this server{what}: whoever is let in may do what you may do"
    yield "Ctrl-C ends the server; no worker is stopped"


def _with_picture(link: str, drawn: str | None) -> list[str]:
    """Return a link, and another one as a QR code, for a phone."""
    if drawn is None:
        return [link]
    import segno

    code = io.StringIO()
    segno.make(drawn, error="l").terminal(code, compact=os.environ.get("TERM") != "linux")
    return [link, code.getvalue().rstrip("\n")]


COMMANDS = (
    Command(
        "serve",
        serve,
        IN_ROOT,
        """
agentctl serve
agentctl serve --read-only --port 9000
agentctl serve --host 192.168.1.20 --tls-cert cert.pem --tls-key key.pem --qr
agentctl serve --url https://box.tailnet.example
agentctl serve --link --qr
""",
        (
            Parameter(
                "port",
                WHOLE,
                "The port; by default the last one used, else 8932 or a free one.",
                "N",
                least=0,
                most=65535,
            ),
            Parameter("host", TEXT, "Where it listens.", "ADDRESS", default="127.0.0.1", group=_ACCESS),
            Parameter("tls_cert", TEXT, "Encrypt, with this certificate.", "FILE", group=_ACCESS),
            Parameter("tls_key", TEXT, "The key of the certificate.", "FILE", group=_ACCESS),
            Parameter("url", TEXT, "The address where a proxy or tunnel makes it reachable.", "URL", group=_ACCESS),
            Parameter("insecure", FLAG, "Let other machines reach it without encryption.", group=_ACCESS),
            Parameter("read_only", FLAG, "Only show; nothing can be started, stopped or answered.", group=_ACCESS),
            Parameter("new_token", FLAG, "Shut out everyone who was let in before.", group=_ACCESS),
            Parameter("link", FLAG, "Only print one more link to the server that runs."),
            Parameter("qr", FLAG, "Print the link as a QR code too."),
        ),
        exits=(),
    ),
)

"""`serve`: what the commands do, over HTTP, and a page in the browser that shows all of it."""

import gc
import os
import shlex
import sys
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.bugs import record_bug
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import is_terminal, note
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode, Refused, UsageError

app = module()
_ACCESS = "Access"


@verb(
    app,
    "serve",
    exits=(),
    examples="""
agentctl serve
agentctl serve --read-only --port 9000
agentctl serve --host 192.168.1.20 --tls-cert cert.pem --tls-key key.pem --qr
agentctl serve --url https://box.tailnet.example
agentctl serve --link --qr
""",
)
def serve(
    call: opt.InRoot,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            help="The port; by default that of the last time, else 8932 or a free one.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where it listens.", rich_help_panel=_ACCESS)
    ] = "127.0.0.1",
    tls_cert: Annotated[
        str | None,
        typer.Option("--tls-cert", metavar="FILE", help="Encrypt, with this certificate.", rich_help_panel=_ACCESS),
    ] = None,
    tls_key: Annotated[
        str | None,
        typer.Option("--tls-key", metavar="FILE", help="The key of the certificate.", rich_help_panel=_ACCESS),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Under which address a proxy or tunnel makes it reachable.",
            rich_help_panel=_ACCESS,
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Let other machines reach it without encryption.", rich_help_panel=_ACCESS),
    ] = False,
    read_only: Annotated[
        bool,
        typer.Option(
            "--read-only", help="Only show; nothing can be started, stopped or answered.", rich_help_panel=_ACCESS
        ),
    ] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Let in nobody who was let in before.", rich_help_panel=_ACCESS)
    ] = False,
    link: Annotated[bool, typer.Option("--link", help="Only print one more link to the server that runs.")] = False,
    qr: Annotated[bool, typer.Option("--qr", help="Print the link as a QR code too.")] = False,
) -> int:
    """Serve the workers of all tasks to a browser, and over HTTP.

    Prints a link to open: once, within 10 minutes. Whoever opens it may do what you may do; --link prints another. The
    server owns nothing: Ctrl-C, or any other end of it, stops no worker, and a page that is open goes on with the next
    one. It is for this machine alone unless --host says otherwise. Needs the extra `serve`, and says how to install it
    where it is missing.
    """
    check_libraries()
    if link:
        if any((port, tls_cert, tls_key, url, insecure, read_only, new_token)) or port == 0 or host != "127.0.0.1":
            raise UsageError("--link goes with --qr alone: it is about the server that runs already")
        return _print_link(call, with_qr=qr)
    # A short command looks for no garbage. A server would keep each failed request, in the circle of an error and the
    # frames that it has passed.
    gc.set_threshold(10_000, 10, 10)
    from agentctl.cli.served import served_commands
    from agentctl.web.serving import ListenAddress, check_address, listening, run

    place = ListenAddress(host, port, tls_cert, tls_key, url, insecure)
    check_address(place)
    # A root that was named is there; where none is, the page is as good a place as any to begin.
    root = call.root(create=call.root_named is None and not read_only)
    with listening(root, place, with_new_token=new_token, is_read_only=read_only) as at:

        def say() -> None:
            opens = at.new_link()
            call.show({"url": at.url, "link": opens, "tokenFile": at.token_file, "root": str(root.path)}, [opens])
            if not call.json:
                _explain(call, at.url, at.token_file, is_near=place.is_near and url is None, has_tls=place.has_tls)
                if is_terminal(sys.stdout) and (qr or not place.is_near or url is not None):
                    _draw(at.new_link())  # Another one: that above may be opened here.

        try:
            run(root, at, served_commands(root, force=call.force), record_bug, say, is_read_only=read_only,
                force=call.force)  # fmt: skip
        except KeyboardInterrupt:
            note("the server has ended; the workers go on")
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


def _print_link(call: Invocation, *, with_qr: bool) -> int:
    """Print one more link to the server of the root."""
    from agentctl.web.serving import link_to

    root = call.root(create=False)
    url, opens, token_file = link_to(root)
    call.show({"url": url, "link": opens, "tokenFile": token_file, "root": str(root.path)}, [opens])
    if with_qr and is_terminal(sys.stdout) and not call.json:
        _draw(link_to(root)[1])
    return ExitCode.DONE


def _explain(call: Invocation, url: str, token_file: str, *, is_near: bool, has_tls: bool) -> None:
    named = "" if call.root_named is None else f" --root {shlex.quote(call.root_named)}"
    note(f"open that link in a browser, once and within 10 minutes; agentctl serve{named} --link prints another")
    note(f"scripts find the token in {token_file}")
    if not is_near:
        what = "" if has_tls or url.startswith("https") else ", and what is sent can be read on its way"
        note(f"warning: other machines may reach this server{what}: whoever is let in may do what you may do")
    note("Ctrl-C ends the server; no worker is stopped")


def _draw(link: str) -> None:
    """Print the link as a QR code, for a phone."""
    import segno

    segno.make(link, error="l").terminal(compact=os.environ.get("TERM") != "linux")
    sys.stdout.flush()

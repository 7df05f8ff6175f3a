"""`serve`: what the commands do, over HTTP, and a page in the browser that shows all of it."""

import gc
import os
import sys
from typing import Annotated

import typer

from agentctl.cli import options as opt
from agentctl.cli.bugs import record
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import is_terminal, note
from agentctl.cli.verb import module, verb
from agentctl.errors import ExitCode, Refused

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
""",
)
def serve(
    call: opt.InRoot,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="The port; by default 8932, or a free one if that is taken."
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
        bool, typer.Option("--new-token", help="Let in nobody who knows the old link.", rich_help_panel=_ACCESS)
    ] = False,
    qr: Annotated[bool, typer.Option("--qr", help="Print the link as a QR code too.")] = False,
) -> int:
    """Serve the workers of all tasks to a browser, and over HTTP.

    Prints the link to open. Whoever has it may do what you may do. The server owns nothing: Ctrl-C, or any other end of
    it, stops no worker, and the next one goes on with the same link. It is for this machine alone unless --host says
    otherwise. Needs the extra `serve`, and says how to install it where it is missing.
    """
    check_libraries()
    # A short command looks for no garbage. A server would keep each failed request, in the circle of an error and the
    # frames that it has passed.
    gc.set_threshold(10_000, 10, 10)
    from agentctl.cli.served import served_commands
    from agentctl.web.serving import ListenAddress, check, listening, run

    place = ListenAddress(host, port, tls_cert, tls_key, url, insecure)
    check(place)
    # A root that was named is there; where none is, the page is as good a place as any to begin.
    root = call.root(create=call.root_named is None and not read_only)
    with listening(root, place, with_new_token=new_token, is_read_only=read_only) as at:

        def say() -> None:
            call.show({"url": at.url, "link": at.link, "tokenFile": at.token_file, "root": str(root.path)}, [at.link])
            if not call.json:
                _explain(call, at.url, at.token_file, is_near=place.is_near and url is None, has_tls=place.has_tls)
                if is_terminal(sys.stdout) and (qr or not place.is_near or url is not None):
                    _draw(at.link)

        try:
            run(root, at, served_commands(root, force=call.force), record, say, is_read_only=read_only,
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


def _explain(call: Invocation, url: str, token_file: str, *, is_near: bool, has_tls: bool) -> None:
    note(f"open that link in a browser; scripts find the token in {token_file}")
    if not is_near:
        what = "" if has_tls or url.startswith("https") else ", and what is sent can be read on its way"
        note(f"warning: other machines may reach this server{what}: whoever has the link may do what you may do")
    note("Ctrl-C ends the server; no worker is stopped")


def _draw(link: str) -> None:
    """Print the link as a QR code, for a phone."""
    import segno

    segno.make(link, error="l").terminal(compact=os.environ.get("TERM") != "linux")
    sys.stdout.flush()

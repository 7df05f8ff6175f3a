"""The program: what `agentctl` and `python -m agentctl` run, and the only place where errors end.

At the top it imports only what is needed to report an error: a Ctrl-C or a missing module while the rest is being
loaded must be reported as well as a later one.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Callable

from agentctl.encoding import ensure_utf8, prepare_stream
from agentctl.errors import AgentctlError, ExitCode, StartInterrupted, at_terminal, steps_in_words, steps_of
from agentctl.interfaces.cli.lost_signals import send_lost_again
from agentctl.lean import Any, NoReturn
from agentctl.world_errors import INSTALLED_AGAIN, error_in_words, missing_part, next_step

PROGRAM = "agentctl"
COMPLETION_VARIABLE = "_AGENTCTL_COMPLETE"
#: Set for the commands of a worker that runs on a node of a cluster.
LAUNCH_VARIABLE = "AGENTCTL_LAUNCH"

#: Errors because something unexpected is in the place of a file; if they name the file, they are not bugs either.
_ODD = frozenset({errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EEXIST, errno.ENOENT, errno.ENOTEMPTY})
_LOOK = "something unexpected is in its place: look at it; agentctl doctor says more"


def run(argv: list[str] | None = None, begun: Any = None) -> NoReturn:
    """Run the program, by default with the arguments of this process, and leave.

    Args:
        begun: For `mcp`: a conversation whose opening was already answered.
    """
    # Modules and rows stay until the end: looking for garbage among them takes a tenth of a short command's time.
    gc.set_threshold(1_000_000)
    send_lost_again()
    code = main(sys.argv[1:] if argv is None else argv, begun)
    # The cleanup of the interpreter at its end takes as long.
    _flush()
    os._exit(code)


def main(argv: list[str], begun: Any = None, first: Any = None) -> int:
    """Run one command; return its exit code. Every error is reported here, and nowhere else.

    Args:
        first: Called before the command; its errors are reported as those of the command are.
    """
    try:
        return _ended(argv, begun, first)
    except Exception as error:
        part = missing_part(error)
        if part is None:
            raise
        return _say_missing(part)


def _ended(argv: list[str], begun: Any, first: Any) -> int:
    try:
        _refuse_platform()
        ensure_utf8()
        _prepare_streams()
        if first is not None:
            first()
        code = _carried_out(argv, begun)
        sys.stdout.flush()
        return code
    except AgentctlError as error:
        return _say(error.message, _next(error.hint, argv), error.exit_code)
    except StartInterrupted as left:
        _flush()
        _print_error(f"interrupted: {left.message}")
        _print_error(f"hint: {left.hint}")
        return ExitCode.INTERRUPTED
    except KeyboardInterrupt:
        return _say_interrupted()
    except Exception as error:
        if missing_part(error) is not None:
            raise
        return _say_error_of_system(error) if isinstance(error, OSError) else _confess(error)


def _refuse_platform() -> None:
    if os.name == "nt":
        raise AgentctlError("agentctl does not run on Windows", hint="use it in WSL 2")
    if not hasattr(os, "waitid"):
        raise AgentctlError("agentctl needs Python 3.13 or newer on macOS", hint="older ones lack os.waitid")


def _carried_out(argv: list[str], begun: Any) -> int:
    if LAUNCH_VARIABLE in os.environ and (code := _by_head(argv)) is not None:
        return code
    if argv[:1] == ["mcp"]:
        return _serve(argv, begun)
    return _hook() if argv == ["hook"] else _of_hosts(argv) if _is_of_hosts(argv) else _dispatch(argv)


def _by_head(argv: list[str]) -> int | None:
    """Have a command of a worker on a node carried out at the head; return its code, None if it is carried out here."""
    from agentctl.worker_programs.on_node.calls.called_files import is_for_head

    if COMPLETION_VARIABLE in os.environ or not is_for_head(argv):
        return None
    from agentctl.worker_programs.on_node.calls.head_call import call_head

    return call_head(argv)


def _hook() -> int:
    """Run the hook that another program waits for at each start of a sub-agent: no parser is loaded, nothing fails."""
    from agentctl.operations.talk.hooking import take_hook

    take_hook(sys.stdin.buffer)
    return ExitCode.DONE


def _serve(argv: list[str], begun: Any) -> int:
    """Run the server that an agent's program waits for: without a parser, unless its command line is unusual."""
    from agentctl.interfaces.mcp import entry

    found = entry.serving_of(argv[1:])
    if found is None or COMPLETION_VARIABLE in os.environ:
        return _dispatch(argv)
    if begun is None:
        entry.serve_client(found)
    else:
        entry.go_on(found, begun)
    return ExitCode.DONE


def _is_of_hosts(argv: list[str]) -> bool:
    """Return whether a command line is for another host, or from one."""
    return bool(argv) and (argv[0] in {"--host", "_names"} or argv[0].startswith("--host=") or argv == ["_far"])


def _of_hosts(argv: list[str]) -> int:
    """Have a command carried out on another host; or carry out, as the far end, what another host has ordered."""
    if argv == ["_far"]:
        from agentctl.interfaces.hosts.far_end import serve_order

        return serve_order(lambda ordered, first: main(ordered, first=first))
    if argv[0] == "_names":
        from agentctl.interfaces.cli.completion import print_names

        print_names(argv[1:])
        return ExitCode.DONE
    if COMPLETION_VARIABLE in os.environ:
        return _dispatch(argv)
    from agentctl.interfaces.hosts.remote_command import relay

    return relay(argv)


def _dispatch(argv: list[str]) -> int:
    """Read the line, without the parser if it is plain, and carry it out."""
    if COMPLETION_VARIABLE in os.environ:
        from agentctl.interfaces.cli.typer_commands import complete_line

        _complete(complete_line)
    from agentctl.interfaces.cli.help_pages import first_page, help_line
    from agentctl.interfaces.cli.plain_lines import plain_line
    from agentctl.interfaces.commands.model.catalogue import meant

    asked = help_line(argv)
    if asked is None:
        print(first_page(), end="")
        return ExitCode.DONE
    words = meant(asked)
    plain = plain_line(words)
    if plain is not None:
        return plain()
    from agentctl.interfaces.cli.typer_commands import run_line

    return run_line(words, PROGRAM)


def _complete(answer: Callable[[str, str], None]) -> None:
    """Answer a shell that completes a line; whatever goes wrong, it must not print into that line."""
    try:
        answer(PROGRAM, COMPLETION_VARIABLE)
    except Exception:  # noqa: BLE001 - no completion is the answer
        _flush()
        os._exit(ExitCode.REFUSED)


def _say_interrupted() -> int:
    _print_error("interrupted")
    return ExitCode.INTERRUPTED


def _say_error_of_system(error: OSError) -> int:
    if isinstance(error, BrokenPipeError) and _nobody_reads():
        return _leave_quietly()
    if error.errno in _ODD and error.filename:
        return _say(error_in_words(error), _LOOK, ExitCode.REFUSED)
    if (step := next_step(error)) is not None:
        return _say(error_in_words(error), steps_in_words(steps_of(step), at_terminal), ExitCode.REFUSED)
    return _confess(error)


def _say_missing(part: str) -> int:
    """Report that agentctl itself is not whole: without a module, since that may be missing, too."""
    _flush()
    _print_error(f"error: {ascii(part)[1:-1]}")
    _print_error(f"hint: {INSTALLED_AGAIN}")
    return ExitCode.REFUSED


def _say(message: str, hint: str | None, code: int) -> int:
    """Report an error and the next step on stderr, after what was printed before."""
    from agentctl.domain.text.plaintext import plain

    _flush()
    _print_error(f"error: {plain(message, keep=chr(10))}")
    if hint:
        _print_error(f"hint: {plain(hint, keep=chr(10))}")
    return code


def _next(hint: str | None, argv: list[str]) -> str | None:
    if not hint or f"{PROGRAM} " not in hint:
        return hint
    from agentctl.interfaces.commands.parts.printed_step import in_same_place

    return in_same_place(hint, argv)


def _confess(error: Exception) -> int:
    """Report a bug in one line, and where its traceback is."""
    from agentctl.interfaces.bug_report import record_bug

    place = record_bug(error)
    what = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    return _say(f"this is a bug in agentctl: {what}", f"the traceback is in {place}", ExitCode.REFUSED)


# -- standard streams ----------------------------------------------------------------------------------------


def _prepare_streams() -> None:
    """Ensure that 0, 1 and 2 are open and that no character stops a line from being printed.

    If one of them were closed, the next file to be opened would get its number, and what is printed would go into it.
    With PYTHONUNBUFFERED, as many containers have it, a write that a signal cuts short would lose the rest.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open as long as we are
        elif name == "stdout" and isinstance(stream.buffer, io.RawIOBase):
            sys.stdout = open(1, "w", encoding=stream.encoding, closefd=False)  # noqa: SIM115
        prepare_stream(getattr(sys, name), is_terminal=os.isatty(1 if name == "stdout" else 2))


def _print_error(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody reads it; the exit code says it too


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # the reader is gone


def _nobody_reads() -> bool:
    """Return whether it was our own output that broke, and not a pipe to a process of ours."""
    import select

    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(happened & (select.POLLERR | select.POLLHUP) for _, happened in poll.poll(0))


def _leave_quietly() -> int:
    """Point stdout at nothing, so that what is still to be flushed causes no further error."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    return ExitCode.REFUSED

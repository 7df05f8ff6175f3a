"""`install boot`: what has a root go on at each boot, where and in which words; how it is written and removed.

It is a unit of the person's own systemd where that runs, else a line of their crontab. Both call `resume --lost` with
the variables that say where this person's files are; secrets stay where they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Mapping

from agentctl.adapters.files import create_whole, make_folders, replace_if_same, storage_errors
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import named_folder, settings_folder
from agentctl.adapters.searchpath import absolute_entries, program_at
from agentctl.adapters.taskdir import Root
from agentctl.errors import AtTerminal, Refused, UsageError
from agentctl.lean import NamedTuple

SYSTEMD, CRONTAB = "systemd", "crontab"
#: Which programs are found, and where a person's own files and the environments of queued workers are.
_FOLDERS = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
_MARK = "# written by `agentctl install boot`; `agentctl install boot --undo` removes it"
#: cron(8) of Debian cuts a longer command off.
_LONGEST_LINE = 990


class BootEntry(NamedTuple):
    """What has a root go on at each boot."""

    kind: str
    #: The file of the unit; of a line in a crontab that word.
    path: str
    text: str
    #: The name of the root among all that have such an entry.
    name: str


def boot_entry(root: Root, environ: Mapping[str, str]) -> BootEntry:
    """Return the entry for a root; nothing is changed.

    Raises:
        UsageError: A path has characters that neither a unit nor a crontab can have.
    """
    path = os.path.realpath(root.path)
    name = f"agentctl-boot-{hashlib.blake2b(os.fsencode(path), digest_size=6).hexdigest()}"
    argv = [sys.executable, "-P", "-m", "agentctl", "resume", "--lost", "--root", path]
    variables = {key: str(folder) for key in _FOLDERS if (folder := named_folder(environ, key))}
    variables = {"PATH": absolute_entries(environ.get("PATH") or os.defpath), **variables}
    if variables.get("XDG_RUNTIME_DIR") == f"/run/user/{os.getuid()}":
        del variables["XDG_RUNTIME_DIR"]  # Of a login: at boot there may be none yet.
    for text in (*argv, *variables.values()):
        _check(text)
    if _has_user_systemd(environ):
        unit = _units(environ) / f"{name}.service"
        return BootEntry(SYSTEMD, str(unit), _unit(path, argv, variables), name)
    return BootEntry(CRONTAB, CRONTAB, _line(argv, variables, name), name)


def _check(text: str) -> None:
    if not text.isprintable() or any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(
            f"{text!r} has a character that neither a systemd unit nor a crontab can hold",
            hint=AtTerminal("have your own script call agentctl resume --lost at boot"),
        )


def _has_user_systemd(environ: Mapping[str, str]) -> bool:
    """Return whether an instance of systemd runs for this person: it listens there."""
    runtime = named_folder(environ, "XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return os.path.exists(os.path.join(runtime, "systemd", "private"))


# -- in words ----------------------------------------------------------------------------------------------------------


def _unit(root: str, argv: list[str], variables: Mapping[str, str]) -> str:
    program, *words = argv
    lines = [
        _MARK,
        "[Unit]",
        f"Description=agentctl: {root.replace('%', '%%')}",
        "",
        "[Service]",
        "Type=oneshot",
        "# The workers outlive the command that starts them.",
        "KillMode=process",
        *(f"Environment={_quoted(f'{key}={value}')}" for key, value in variables.items()),
        # Only in the words behind the program is a dollar the beginning of a variable (systemd.service(5)).
        f"ExecStart={' '.join([_quoted(program), *(_quoted(word).replace('$', '$$') for word in words)])}",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "".join(f"{line}\n" for line in lines)


def _quoted(word: str) -> str:
    """Return a word as systemd.syntax(7) takes it: in quotes, without an escape or a specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _line(argv: list[str], variables: Mapping[str, str], name: str) -> str:
    words = ["/usr/bin/env", *(f"{key}={value}" for key, value in variables.items()), *argv]
    command = " ".join(map(_for_cron, words))
    if len(command.encode()) > _LONGEST_LINE:
        import shlex

        program = shlex.join(argv[: argv.index("resume")])  # Which no longer is in that PATH, perhaps.
        raise UsageError(
            f"the line would be longer than {_LONGEST_LINE} bytes, and some crons cut it off there",
            hint=f"call it with a shorter PATH: PATH=/usr/bin:/bin {program} install boot",
        )
    return f"@reboot {command} {_suffix(name)}\n"


def _suffix(name: str) -> str:
    return f"# {name}"


def _for_cron(word: str) -> str:
    """Return a word for the shell that cron(8) calls: a per cent sign is escaped for it, and so is read by no shell.

    >>> _for_cron("it's 5%")
    '\\'it\\'"\\'"\\'s 5\\'\\\\%\\'\\''
    """
    if "\\" in word:
        raise UsageError(f"{word!r} has a backslash, which not every cron reads alike", hint="rename that folder")
    quoted = word.replace("'", "'\"'\"'").replace("%", "'\\%'")
    return f"'{quoted}'"


# -- in place ----------------------------------------------------------------------------------------------------------


def write_entry(entry: BootEntry, environ: Mapping[str, str]) -> list[str]:
    """Write an entry, in place of an earlier one of the same root; return what was written: [] if it is there so.

    Raises:
        Refused: A unit of that name is not ours, or somebody has saved it meanwhile.
    """
    if entry.kind == CRONTAB:
        return _change_crontab(lambda lines: [*_without(entry, lines), entry.text])
    unit, link = FilePath(entry.path), _link(entry, environ)
    before = _read(unit)
    if before == entry.text and os.path.islink(link):
        return []
    if before is not None and not before.startswith(_MARK):
        raise Refused(f"{unit} was not written by agentctl", hint="move it away, then try again")
    with storage_errors(unit, "write"):
        make_folders(link.parent)
        if not _put(unit, before, entry.text):
            raise Refused(f"{unit} was changed meanwhile, or is open for writing", hint="look at it, then try again")
        with contextlib.suppress(FileExistsError):
            os.symlink(f"../{unit.name}", link)
    return [entry.path]


def _put(unit: FilePath, before: str | None, text: str) -> bool:
    """Write a unit; return False where somebody has saved it since it was read."""
    if before is None:
        return create_whole(unit, text.encode())
    return replace_if_same(unit, before.encode("utf-8", "surrogateescape"), text.encode())


def remove_entry(entry: BootEntry, environ: Mapping[str, str]) -> list[str]:
    """Remove the entry of a root, wherever it is; return what was changed."""
    found = []
    unit = _units(environ) / f"{entry.name}.service"
    if (_read(unit) or "").startswith(_MARK):
        link = _link(entry, environ)
        for path in (link, unit):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        with contextlib.suppress(OSError):  # Only if they are empty.
            for folder in (link.parent, unit.parent, unit.parent.parent):
                os.rmdir(folder)
        found.append(str(unit))
    if program_at(CRONTAB) is not None:
        found += _change_crontab(lambda lines: _without(entry, lines))
    return found


def needs_linger(entry: BootEntry) -> bool:
    """Return whether this person's systemd starts only at their first login, and not at boot."""
    import getpass

    return entry.kind == SYSTEMD and not os.path.exists(f"/var/lib/systemd/linger/{getpass.getuser()}")


def _units(environ: Mapping[str, str]) -> FilePath:
    return settings_folder(environ) / "systemd" / "user"


def _link(entry: BootEntry, environ: Mapping[str, str]) -> FilePath:
    """Return the link by which a unit is enabled, as `systemctl --user enable` makes it."""
    return _units(environ) / "default.target.wants" / f"{entry.name}.service"


def _read(path: FilePath) -> str | None:
    try:
        return read_bytes(path).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _without(entry: BootEntry, lines: list[str]) -> list[str]:
    return [
        line for line in lines if not (line.startswith("@reboot ") and line.rstrip("\n").endswith(_suffix(entry.name)))
    ]


def _change_crontab(change: Callable[[list[str]], list[str]]) -> list[str]:
    """Change the lines of this person's crontab; the others keep their bytes. Return `[CRONTAB]` if it was changed."""
    before = _crontab("-l")
    after = "".join(change([f"{line}\n" for line in before.removesuffix("\n").split("\n")] if before else []))
    if after == before:
        return []
    _crontab("-", after) if after else _crontab("-r")
    return [CRONTAB]


def _crontab(argument: str, text: str = "") -> str:
    """Call `crontab`; return what it prints: nothing if this person has none."""
    import subprocess

    program = program_at(CRONTAB)
    if program is None:
        raise Refused(
            "there is neither an instance of systemd for you here, nor the program crontab",
            hint=AtTerminal(
                "have agentctl resume --lost called at boot in another way: agentctl install boot prints how"
            ),
        )
    done = subprocess.run(
        [program, argument], input=text, capture_output=True, check=False, encoding="utf-8",
        errors="surrogateescape", env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    if done.returncode != 0 and not (argument == "-l" and "no crontab" in done.stderr):
        raise Refused(
            f"crontab {argument} failed: {done.stderr.strip()}",
            hint=AtTerminal("agentctl install boot prints the line"),
        )
    return done.stdout if done.returncode == 0 else ""

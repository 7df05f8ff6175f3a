"""What is known of one program that speaks ACP: a row of `programs.yaml`, and the driver that it makes."""

from __future__ import annotations

import json
import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agentctl.domain.agent.permissions import ANSWERS, BadValue
from agentctl.domain.names import is_name
from agentctl.drivers.acp.denials import with_denials
from agentctl.drivers.dialogue import Dialogue, Driver, HomeFolder
from agentctl.drivers.marks import Marks, names_of_row
from agentctl.drivers.order import ALLOWING, ASKING, BY_OWN_SETTINGS, READ_ONLY, Order
from agentctl.lean import NamedTuple
from agentctl.parts import part

#: The extra of agentctl that installs the library, which has the same name.
EXTRA = "acp"
#: What the protocol lets agentctl honour with every program; `cannot` of a row takes some of it away.
_HONOURS = frozenset({"model", "effort", "maxTurns", "permissions", "resume", "keep", "mcpServers"})
#: How a program is given the role of a definition: before the first prompt, or in the field of `session/new` in which
#: claude-agent-acp takes an addition to its system prompt.
IN_PROMPT, IN_META = "prompt", "systemPrompt"
_INSTRUCTIONS = (IN_PROMPT, IN_META)
#: Where a program reports tokens: with the answer to a prompt, those of the session so far or of the turn; or with each
#: message, those of one request.
PER_SESSION, PER_TURN, PER_MESSAGE = "session", "turn", "message"
#: Stand in the environment of a row for the agent's folder, as in a JSON string, for the folder of this file, and for
#: the `permission` of a manner with the person's own denials, as JSON.
_FOLDER, _HERE, _PERMISSION = "{cwd}", "{here}", "{permission}"
#: Stands in a mode and in the environment for a name that is new at each start: nothing that a person, a project or a
#: model has written before can be about an agent of this name.
_NAME = "{name}"
_PLACEHOLDER = re.compile("|".join(map(re.escape, (_FOLDER, _HERE, _PERMISSION, _NAME))))
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
#: Variables whose values tell one login from another.
_LOGIN = re.compile(r"(?<!^AGENTCTL)(?:_KEY|_TOKEN|_BASE_URL|_CONFIG_DIR|_HOME)$|^HOME$")
_LONGEST = 8192


class Manner(NamedTuple):
    """How a program is brought to work in a certain manner: to change nothing, or to ask before it does."""

    #: A mode of its sessions.
    mode: str | None = None
    #: Those in which it may be besides, since they are as strict: by its arguments, or by a choice of its model's.
    modes: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    #: What an agent of ours may do in it: stands for `{permission}`, with the person's own denials after it.
    permission: Mapping[str, str] = {}
    #: The `_meta` of the request that opens a session, in which some programs take settings.
    session_meta: Mapping[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """Return it as a row has it."""
        fields = {
            "mode": self.mode, "modes": list(self.modes), "args": list(self.args), "environ": dict(self.environ),
            "permission": dict(self.permission), "sessionMeta": dict(self.session_meta),
        }  # fmt: skip
        return {key: value for key, value in fields.items() if value}


class AcpProgram(NamedTuple):
    """One row."""

    #: The name to look up in PATH.
    program: str = ""
    #: The arguments that make it speak ACP.
    args: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    session_meta: Mapping[str, Any] = {}
    #: Variables that are not passed on: those by which another agent of the same kind describes itself.
    unset: tuple[str, ...] = ()
    version_args: tuple[str, ...] = ("--version",)
    tested: str = ""
    #: The modes of its sessions in that version: a test compares them with those of the real program.
    modes: tuple[str, ...] = ()
    install: str = ""
    #: Names of a project's files and folders that it obeys without asking: it is not started where there are any. With
    #: `NAME: WORD` only a file counts in which that word may be.
    obeys: tuple[str, ...] = ()
    #: Kinds of answers to its requests that nobody is offered: they would write into the project's settings.
    withheld: tuple[str, ...] = ()
    #: What it cannot do, of `_HONOURS`.
    cannot: tuple[str, ...] = ()
    #: How it is kept from changing anything; None: there is no way that holds, so it runs no agent that may only read.
    read_only: Manner | None = None
    #: How it is brought to ask before it changes anything, by which nothing may be added; None: nothing shows that it
    #: asks, so it is not started where somebody is asked.
    asking: Manner | None = None
    #: How it works where the rules allow everything; None: as ever, and each request is answered with yes.
    allowing: Manner | None = None
    #: How it works where the person's own settings of it decide; None: as they are.
    own: Manner | None = None
    #: The arguments by which it prints the person's settings as JSON, with their own denials in `permission`.
    own_denials: tuple[str, ...] = ()
    instructions: str = IN_PROMPT
    #: Whose tokens it reports; "": none that could be added up.
    usage: str = ""
    #: It reports what its sessions have cost, in US dollars.
    reports_cost: bool = False
    #: What it says where it cannot begin since another one of it just does: it is tried again then.
    busy: tuple[str, ...] = ()
    #: Variables that have a new secret at each start: it opens a port, and whoever connects to that has to know it.
    secrets: tuple[str, ...] = ()
    #: It may ask about a call before it has told the arguments: they come with a later update of the call.
    tells_late: bool = False
    #: It asks the user with a tool of its own.
    asks: bool = False
    #: The way in `_meta` to the place where it takes MCP servers, if it shows their tools only so; "a.b": in b of a.
    servers_in: str = ""
    #: The dialect of agentctl's own tools that its model knows best.
    tools: str = "codex"
    #: Whose tools it has, if it asks about those as well that only read: `claude`. What they read in the agent's folder
    #: is then allowed without asking anybody.
    reads: str = ""
    #: The driver that knows the folder of settings of the program within it, if it is given one of its own.
    home: str = ""
    #: Variables that it sets in the shells that it runs; and what its processes are called, besides `program`.
    marks: tuple[str, ...] = ()
    runs_as: tuple[str, ...] = ()
    #: The command line that opens a session of it by hand, with the session as one more word.
    by_hand: tuple[str, ...] = ()

    @property
    def known_by(self) -> Marks:
        """Return by what its processes are known."""
        return Marks(self.marks, names_of_row(self.program, self.runs_as))

    def manner(self, order: Order) -> Manner:
        """Return how it is to work for an order."""
        manners = {
            READ_ONLY: self.read_only, ALLOWING: self.allowing or self.asking, ASKING: self.asking,
            BY_OWN_SETTINGS: self.own,
        }  # fmt: skip
        manner = manners[order.stance] or Manner()
        return manner._replace(mode=manner.mode and manner.mode.replace(_NAME, _name_for(order)))

    def to_json(self) -> dict[str, Any]:
        """Return what a running agent, and whoever continues it, needs to know; the order keeps it."""
        manners = {
            "readOnly": self.read_only, "asking": self.asking, "allowing": self.allowing, "own": self.own,
        }  # fmt: skip
        fields = {
            "program": self.program, "install": self.install, "args": list(self.args), "environ": dict(self.environ),
            "unset": list(self.unset), "obeys": list(self.obeys), "withheld": list(self.withheld),
            "cannot": list(self.cannot), "ownDenials": list(self.own_denials),
            "instructions": self.instructions, "busy": list(self.busy), "secrets": list(self.secrets),
            "serversIn": self.servers_in, "tools": self.tools, "reads": self.reads,
            "tellsLate": self.tells_late or None, "usage": self.usage, "reportsCost": self.reports_cost or None,
            "asks": self.asks or None, "home": self.home, "byHand": list(self.by_hand),
            "sessionMeta": dict(self.session_meta),
        }  # fmt: skip
        said = {key: value for key, value in fields.items() if value not in (None, "", [], {})}
        return {**said, **{key: manner.to_json() for key, manner in manners.items() if manner is not None}}


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return two JSON objects as one, with their inner objects joined too; where both have a value, the other's.

    >>> joined({"a": {"b": 1, "c": 1}}, {"a": {"c": 2}})
    {'a': {'b': 1, 'c': 2}}
    """
    found = dict(one)
    for key, value in other.items():
        inner = found.get(key)
        found[key] = joined(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return found


def program_from(value: Any, place: tuple[str, ...] = ()) -> AcpProgram:
    """Return the program in a row.

    >>> program_from({"program": "goose", "args": ["acp"]}).args
    ('acp',)

    Raises:
        BadValue: The row is not valid; `place` leads to it.
    """
    if not isinstance(value, Mapping):
        raise BadValue(place, "a program is described by a mapping: program, args, ...")
    for key in value:
        if key not in _KEYS:
            raise BadValue((*place, str(key)), f"unknown key {key!r}; known: {', '.join(_KEYS)}")
    fields = {_KEYS[key][0]: _KEYS[key][1](item, (*place, key)) for key, item in value.items()}
    return AcpProgram(**fields)


def driver_of(name: str, row: AcpProgram) -> Driver:
    """Return the driver of a program."""

    def argv(order: Order) -> list[str]:
        return [order.program, *row.args, *row.manner(order).args]

    def settings_argv(order: Order) -> list[str]:
        return [order.program, *row.own_denials] if row.own_denials and row.manner(order).permission else []

    return Driver(
        name=name,
        program=row.program,
        version_argv=row.version_args,
        tested=row.tested,
        install=row.install
        or (f"install {row.program} and put it into PATH" if row.program else "correct argv in its definition"),
        honours=(_HONOURS | ({"readOnly"} if row.read_only else set())) - set(row.cannot),
        argv=argv,
        environ=partial(_environ_for, row),
        dialogue=_dialogue,
        settings_argv=settings_argv,
        busy=row.busy,
        secrets=row.secrets,
        is_known_to_ask=row.asking is not None,
        needs_nonce=_NAME in json.dumps(row.to_json()),
        # While it works: what is told at the end of a turn comes too late for a limit.
        reports=frozenset({"tokens"} if row.usage == PER_MESSAGE else ()),
        tools=row.tools,
        asks=row.asks,
        account=_account,
        extra=EXTRA,
        lingers_s=_LINGERS_S,
        facts=row.to_json(),
        obeys=row.obeys,
        is_recorded=True,
        home=lambda order: _home(row, order),
        marks=row.known_by,
        leaves_mount_points=row.home == "codex",
        resets_path=row.home == "codex",
        by_hand=(lambda session: [*row.by_hand, session]) if row.by_hand else None,
        writer_lock=partial(_writer_lock, row.home) if row.home else None,
    )


def _environ_for(row: AcpProgram, order: Order, inherited: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in inherited.items() if name not in row.unset}
    manner = row.manner(order)
    stands_for = {
        _PERMISSION: json.dumps(with_denials(manner.permission, order.own_settings.get("permission"))),
        _NAME: _name_for(order), _FOLDER: json.dumps(order.cwd)[1:-1],
        _HERE: os.path.dirname(os.path.abspath(__file__)),
    }  # fmt: skip
    own = {**row.environ, **manner.environ}
    return {**kept, **{name: _filled(value, stands_for) for name, value in own.items()}}


def _account(environ: Mapping[str, str], _read: Callable[[str], bytes]) -> Sequence[str]:
    return [f"{name}={value}" for name, value in sorted(environ.items()) if _LOGIN.search(name)]


def _name_for(order: Order) -> str:
    return f"agentctl-{order.nonce}"


def _filled(text: str, stands_for: Mapping[str, str]) -> str:
    """Return a text with what stands in it for something else replaced, once: what is filled in is taken as it is."""
    return _PLACEHOLDER.sub(lambda found: stands_for[found.group()], text)


#: How long a program may take to end once its answer is there and its input is closed. Some never end by themselves.
_LINGERS_S = 2.0


def _home(row: AcpProgram, order: Order) -> HomeFolder | None:
    if not row.home:
        return None
    home: HomeFolder | None = part(f"agentctl.drivers.{row.home}.adapter_home", "home_of")(order)
    return home


def _writer_lock(home: str, inherited: Mapping[str, str], session: str) -> str:
    """Return the lock of a session: it is one of the program within, whose folder has it."""
    path: str = part(f"agentctl.drivers.{home}.sessions", "writer_lock")(inherited, session)
    return path


def _dialogue(order: Order) -> Dialogue:
    # By its name: the library comes with it, and only a running agent may load that.
    dialogue: Dialogue = part(f"{__package__}.conversation", "AcpDialogue")(order)
    return dialogue


# -- values ----------------------------------------------------------------------------------------------------------


def _text(value: Any, place: tuple[str, ...]) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST or "\0" in value:
        is_unquoted = not isinstance(value, (str, Mapping, list)) and value is not None
        what = f"item {int(place[-1]) + 1} of {place[-2]}" if place[-1].isdecimal() else place[-1]
        raise BadValue(place, f"{what} must be text, not {value!r}"[:300] + (": quote it" if is_unquoted else ""))
    return value


def _name(value: Any, place: tuple[str, ...]) -> str:
    text = _text(value, place)
    if not text.strip() or "/" in text:
        raise BadValue(place, f"{place[-1]} must be a name to look up in PATH, not {value!r}"[:300])
    return text


def _texts(value: Any, place: tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadValue(place, f"{place[-1]} must be a list of texts, not {value!r}"[:300])
    return tuple(_text(item, (*place, str(number))) for number, item in enumerate(value))


def _one_of(*known: str) -> Callable[[Any, tuple[str, ...]], str]:
    def check(value: Any, place: tuple[str, ...]) -> str:
        if value not in known:
            raise BadValue(place, f"{place[-1]} must be one of {', '.join(known)}, not {value!r}"[:300])
        return str(value)

    return check


def _some_of(*known: str) -> Callable[[Any, tuple[str, ...]], tuple[str, ...]]:
    def check(value: Any, place: tuple[str, ...]) -> tuple[str, ...]:
        for item in _texts(value, place):
            _one_of(*known)(item, place)
        return tuple(value)

    return check


def _flag(value: Any, place: tuple[str, ...]) -> bool:
    if not isinstance(value, bool):
        raise BadValue(place, f"{place[-1]} must be true or false, not {value!r}"[:300])
    return value


def _variables(value: Any, place: tuple[str, ...]) -> tuple[str, ...]:
    for number, name in enumerate(_texts(value, place)):
        if not _VARIABLE.fullmatch(name):
            raise BadValue((*place, str(number)), f"{name!r} cannot be the name of a variable"[:300])
    return tuple(value)


def _process_names(value: Any, place: tuple[str, ...]) -> tuple[str, ...]:
    for number, name in enumerate(_texts(value, place)):
        if not names_of_row(name, ()) or name.startswith("/") or name.endswith("/"):
            why = "must be the name of a program or script, or of a package in its path"
            raise BadValue((*place, str(number)), f"{place[-1]} {why}, not {name!r}"[:300])
    return tuple(value)


def _environ(value: Any, place: tuple[str, ...]) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise BadValue(place, f"{place[-1]} must be a mapping of variables to texts")
    for name in value:
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise BadValue((*place, str(name)), f"{name!r} cannot be the name of a variable"[:300])
    return {name: _text(item, (*place, name)) for name, item in value.items()}


def _answers(value: Any, place: tuple[str, ...]) -> dict[str, str]:
    found = {name: _one_of(*ANSWERS)(item, (*place, name)) for name, item in _object(value, place).items()}
    if "*" not in found:
        raise BadValue(place, f'{place[-1]} needs the key "*", which says what holds for every other tool')
    return found


def _asking(value: Any, place: tuple[str, ...]) -> Manner:
    return Manner() if isinstance(value, Mapping) and not value else _manner(value, place)


def _manner(value: Any, place: tuple[str, ...]) -> Manner:
    if not isinstance(value, Mapping) or not value:
        raise BadValue(place, f"{place[-1]} must be a mapping: {', '.join(_MANNER)}")
    for key in value:
        if key not in _MANNER:
            raise BadValue((*place, str(key)), f"unknown key {key!r}; known: {', '.join(_MANNER)}")
    return Manner(**{_MANNER[key][0]: _MANNER[key][1](item, (*place, key)) for key, item in value.items()})


def _object(value: Any, place: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadValue(place, f"{place[-1]} must be a mapping, not {value!r}"[:300])
    return dict(value)


_Check = Callable[[Any, tuple[str, ...]], Any]
#: key of a manner -> (field, check)
_MANNER: dict[str, tuple[str, _Check]] = {
    "mode": ("mode", _text),
    "modes": ("modes", _texts),
    "args": ("args", _texts),
    "environ": ("environ", _environ),
    "permission": ("permission", _answers),
    "sessionMeta": ("session_meta", _object),
}
#: key of a row -> (field, check)
_KEYS: dict[str, tuple[str, _Check]] = {
    "program": ("program", _name),
    "args": ("args", _texts),
    "environ": ("environ", _environ),
    "unset": ("unset", _texts),
    "versionArgs": ("version_args", _texts),
    "tested": ("tested", _text),
    "modes": ("modes", _texts),
    "install": ("install", _text),
    "obeys": ("obeys", _texts),
    "withheld": ("withheld", _some_of("allow_always", "reject_always")),
    "cannot": ("cannot", _some_of(*sorted(_HONOURS))),
    "readOnly": ("read_only", _manner),
    "asking": ("asking", _asking),
    "allowing": ("allowing", _manner),
    "own": ("own", _manner),
    "ownDenials": ("own_denials", _texts),
    "sessionMeta": ("session_meta", _object),
    "instructions": ("instructions", _one_of(*_INSTRUCTIONS)),
    "usage": ("usage", _one_of(PER_SESSION, PER_TURN, PER_MESSAGE)),
    "reportsCost": ("reports_cost", _flag),
    "busy": ("busy", _texts),
    "secrets": ("secrets", _variables),
    "asks": ("asks", _flag),
    "tellsLate": ("tells_late", _flag),
    "serversIn": ("servers_in", _text),
    "tools": ("tools", _one_of("codex", "claude")),
    "reads": ("reads", _one_of("claude")),
    "home": ("home", _one_of("codex")),
    "marks": ("marks", _variables),
    "runsAs": ("runs_as", _process_names),
    "byHand": ("by_hand", _texts),
}


def check_driver_name(name: str, taken: Sequence[str], place: tuple[str, ...]) -> str:
    """Return the name of a row, which is that of its driver.

    Raises:
        BadValue: It is not a name, or it is another driver's.
    """
    if not is_name(name):
        raise BadValue(place, f"{name!r} cannot be the name of a driver")
    if name in taken:
        raise BadValue(place, f"{name} is the name of a driver that is part of agentctl")
    return name

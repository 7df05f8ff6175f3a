"""Reads `notify` of a person's config.yaml, the only place where targets are defined, and `config.notify` of a task.

Errors name file, line and key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from agentctl.adapters.document import Document
from agentctl.adapters.taskyaml.reader import NOTIFY
from agentctl.domain.names import NAME_RULE, is_name
from agentctl.domain.notice.notices import DEFAULT_KINDS, KINDS
from agentctl.domain.notice.quiet import QuietHours, parse_quiet
from agentctl.domain.notice.targets import (
    COMMAND,
    MOST_TARGETS,
    NTFY,
    TERMINAL,
    TYPES,
    WAYS,
    WEBHOOK,
    Naming,
    NoticeTarget,
    check_kinds,
    parse_namings,
)
from agentctl.lean import NamedTuple

T = TypeVar("T")

_KEYS = ("targets", "hosts", "always", "quiet")
#: The keys of each type of target, besides `type` and `events`.
_OF_TYPE = {NTFY: ("url", "token", "buttons"), WEBHOOK: ("url", "token"), COMMAND: ("command",), TERMINAL: ("ways",)}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST_WORDS = 100


class PersonalNotify(NamedTuple):
    """What a person's config.yaml says about being told."""

    targets: Mapping[str, NoticeTarget] = {}
    hosts: tuple[str, ...] = ()
    always: tuple[Naming, ...] = ()
    quiet: QuietHours | None = None


def read_namings(document: Document) -> tuple[Naming, ...]:
    """Return the targets that the document's `config.notify` names."""
    value = document.at("config", NOTIFY)
    return () if value is None else _checked(document, ("config", NOTIFY), parse_namings, value)


def read_notify(document: Document) -> PersonalNotify:
    """Return what `notify` in a person's config.yaml says.

    Raises:
        UsageError: It is not of that form; the message names file, line and key.
    """
    value = document.value.get(NOTIFY)
    if value is None:
        return PersonalNotify()
    section = _mapping(document, (NOTIFY,), value, _KEYS)
    hosts = _texts(document, (NOTIFY, "hosts"), section.get("hosts", []))
    defined = section.get("targets") or {}
    if not isinstance(defined, Mapping) or len(defined) > MOST_TARGETS:
        raise document.error((NOTIFY, "targets"), f"targets must map at most {MOST_TARGETS} names to targets")
    targets = {name: _target(document, name, what, hosts) for name, what in defined.items()}
    always = _checked(document, (NOTIFY, "always"), parse_namings, section.get("always", []))
    unknown = [one.name for one in always if one.name not in targets]
    if unknown:
        raise document.error((NOTIFY, "always"), f"always names {unknown[0]!r}, which `targets` does not define")
    quiet = section.get("quiet")
    hours = None if quiet is None else _checked(document, (NOTIFY, "quiet"), parse_quiet, quiet)
    return PersonalNotify(targets, hosts, always, hours)


def _target(document: Document, name: str, value: object, hosts: tuple[str, ...]) -> NoticeTarget:
    at = (NOTIFY, "targets", name)
    if not is_name(name):
        raise document.error(at, f"the name {name!r} of a target must be {NAME_RULE}")
    type_ = value.get("type") if isinstance(value, Mapping) else None
    if type_ not in TYPES:
        raise document.error((*at, "type"), f"the type of target {name} must be one of {', '.join(TYPES)}")
    found = _mapping(document, at, value, ("type", "events", *_OF_TYPE[type_]))
    events = _checked(document, (*at, "events"), _kinds, found.get("events", list(DEFAULT_KINDS)))
    if type_ == COMMAND:
        return NoticeTarget(name, type_, argv=_command(document, (*at, "command"), found.get("command")), events=events)
    if type_ == TERMINAL:
        ways = _texts(document, (*at, "ways"), found.get("ways", ["bell"]))
        if not ways or not set(ways) <= set(WAYS):
            raise document.error((*at, "ways"), f"ways must be a list of {', '.join(WAYS)}")
        return NoticeTarget(name, type_, ways=ways, events=events)
    url = _checked(
        document, (*at, "url"), lambda text: check_url(text, hosts, needs_path=type_ == NTFY), found.get("url")
    )
    token = found.get("token", "")
    if not isinstance(token, str) or not token.isascii() or (token and not token.isprintable()):
        raise document.error((*at, "token"), "token must be a text of printable ASCII characters")
    buttons = found.get("buttons", False)
    if not isinstance(buttons, bool):
        raise document.error((*at, "buttons"), "buttons must be true or false")
    return NoticeTarget(name, type_, url=url, token=token, events=events, buttons=buttons)


def check_url(text: object, hosts: tuple[str, ...], *, needs_path: bool = False) -> str:
    """Return a URL to which notices may be sent.

    >>> check_url("https://ntfy.sh/mine", ("ntfy.sh",))
    'https://ntfy.sh/mine'

    Args:
        needs_path: Its path names something, as the topic of ntfy does.

    Raises:
        ValueError: It is not an address, its host is not in `hosts`, or it is not encrypted and leaves this machine.
    """
    if not isinstance(text, str) or not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("url must be a text of printable ASCII characters")
    parts = urlsplit(text)
    host, _ = parts.hostname, parts.port  # ValueError: the port is not a number.
    if host is None or parts.username is not None or parts.fragment or parts.scheme not in ("https", "http"):
        raise ValueError("url must be of the form https://HOST/PATH; a token has a key of its own")
    if host not in hosts:
        raise ValueError(f"the host {host} is not in `hosts`, the list of those that may be told")
    if parts.scheme != "https" and host not in _LOOPBACK:
        raise ValueError(f"url must begin with https://: what is sent to {host} could be read on the way")
    if needs_path and not parts.path.strip("/"):
        raise ValueError("url must end with the topic, as in https://ntfy.sh/TOPIC")
    return text


def _kinds(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"events must be a list of {', '.join(KINDS)}")  # noqa: TRY004 - it is a value of a file
    return check_kinds(value)


def _command(document: Document, at: tuple[str, ...], value: object) -> tuple[str, ...]:
    argv = _texts(document, at, value)
    if not argv or not argv[0] or any("\0" in word for word in argv):
        raise document.error(at, "command must be a list: a program and its arguments")
    if "/" in argv[0] and not argv[0].startswith("/"):
        raise document.error(at, f"the program {argv[0]!r} must be a name or an absolute path")
    return argv


def _texts(document: Document, at: tuple[str, ...], value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MOST_WORDS or not all(isinstance(one, str) for one in value):
        raise document.error(at, f"{at[-1]} must be a list of texts")
    return tuple(value)


def _mapping(document: Document, at: tuple[str, ...], value: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise document.error(at, f"{at[-1]} must be a mapping")
    document.check_keys(at, value, known)
    return value


def _checked(document: Document, at: tuple[str, ...], parse: Callable[[Any], T], value: object) -> T:
    try:
        return parse(value)
    except ValueError as error:
        text = str(error)
        raise document.error(at, text if text.startswith(at[-1]) else f"{at[-1]}: {text}") from error

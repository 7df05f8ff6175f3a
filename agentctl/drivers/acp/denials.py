"""Keeps a person's own denials where an agent of ours takes the place of theirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from agentctl.lean import NamedTuple

_DENY, _ALL = "deny", "*"
#: Whatever else a rule may say of a later release: it may have been meant to deny.
_KNOWN = ("allow", "ask", _DENY)
#: The tools of agentctl's own server: only a denial that names them is about them.
_OURS = "agentctl_"


class _Rule(NamedTuple):
    tool: str
    pattern: str
    answer: str


def with_denials(ours: Mapping[str, str], theirs: Any) -> dict[str, Any]:
    """Return the permissions of our agent, with what the person denies denied; of rules that match the last decides.

    What the person allows, or asks about, after a denial is as our agent has it.

    >>> with_denials({"*": "ask", "read": "allow"}, {"bash": {"*": "allow", "rm *": "deny"}, "edit": "deny"})
    {'*': 'ask', 'read': 'allow', 'bash': {'*': 'ask', 'rm *': 'deny'}, 'edit': 'deny'}
    >>> with_denials({"*": "ask", "read": "allow", "list": "allow"}, {"*": "deny", "read": {"*": "allow", "x": "deny"}})
    {'*': 'deny', 'read': {'*': 'allow', 'x': 'deny'}, 'list': 'deny'}
    """
    rules = list(_rules(theirs))
    if not ours or not any(rule.answer == _DENY for rule in rules):
        return dict(ours)
    return {tool: _answers(tool, ours, rules) for tool in dict.fromkeys([*ours, *(rule.tool for rule in rules)])}


def _rules(theirs: Any) -> Iterator[_Rule]:
    for tool, answers in _for_each(theirs):
        for pattern, answer in _for_each(answers):
            yield _Rule(tool, pattern, answer if answer in _KNOWN else _DENY)


def _for_each(said: Any) -> Iterable[tuple[str, Any]]:
    """Return what is said for each tool or pattern; what is said alone is so for all."""
    return said.items() if isinstance(said, Mapping) else [] if said is None else [(_ALL, said)]


def _answers(tool: str, ours: Mapping[str, str], rules: list[_Rule]) -> Any:
    """Return the answer for all calls of a tool, or those by the patterns of the person's."""
    own = ours.get(tool, ours[_ALL])
    found = {_ALL: own}
    for rule in rules:
        if _is_about(rule.tool, tool):
            answer = _DENY if rule.answer == _DENY else own
            # After a rule for all calls none before it decides.
            found = {_ALL: answer} if rule.pattern == _ALL else {**found, rule.pattern: answer}
    return found if len(found) > 1 else found[_ALL]


def _is_about(pattern: str, tool: str) -> bool:
    return pattern == tool or (not tool.startswith(_OURS) and fnmatchcase(tool, pattern))

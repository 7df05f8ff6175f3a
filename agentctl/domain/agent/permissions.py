"""Decides which tool calls of an agent are allowed, denied or asked about: the first rule that matches counts.

A rule is {tool, pattern, answer}. What no rule matches is asked about. An allow rule matches narrowly (in doubt not at
all, and a person is asked), a deny or ask rule widely.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Protocol

from agentctl.domain.states import OWN
from agentctl.domain.text.containment import lies_in, trimmed
from agentctl.errors import UsageError

ANSWERS = ("allow", "deny", "ask")
POLICIES = (*ANSWERS, OWN)
Rules = list[dict[str, str]]
_KEYS = ("tool", "pattern", "answer")
_LONGEST = 4096

#: The programs' names for the tool that runs a command: a rule for one of these names is a rule for all.
SHELLS = frozenset({"bash", "shell", "commandexecution", "command_execution", "exec_command", "run_shell_command"})
_FINDS, _SEARCHES = frozenset({"glob", "find"}), frozenset({"grep", "search"})
#: Such groups of names: of the shells, and of the tools of our own program for plain models.
_SAME = (
    SHELLS,
    frozenset({"read", "read_file"}),
    _FINDS,
    _SEARCHES,
    frozenset({"edit", "edit_file"}),
    frozenset({"write", "write_file"}),
    frozenset({"askuserquestion", "ask_user"}),
)
#: Another name of the searches of our own program, which leave out what rules forbid. No model can call a tool so.
OWN_SEARCH = "agentctl/search"
#: The tools of servers have a meaning of their own, whatever their arguments are called.
_OF_SERVERS = "mcp__"
#: The telling arguments: those that show what a tool is about to touch, at any depth.
_COMMANDS = frozenset({"command", "cmd", "commands", "script", "argv"})
_PATHS = frozenset(
    {"path", "paths", "file_path", "filepath", "notebook_path", "absolute_path", "dir_path", "directory", "grantroot"}
)
_OTHERS = frozenset({"url", "urls", "uri", "query"})
#: The rule for a call that is nested too deep to look at.
_UNCLEAR = {"tool": "?*", "pattern": "*", "answer": "ask"}
#: What lets a shell do more than run one program: sequences, pipes, redirections, substitutions, variables.
_CONTROL = re.compile(r"[;&|<>`$()]")
#: The shell that some programs report around a command; a shell in any other folder may be anything.
_WRAPPER = re.compile(r"(?:(?:/usr(?:/local)?)?/bin/)?(?:ba|da|k|z)?sh\s+-l?c\s+('[^']*'|\"[^\"\\]*\")", re.ASCII)


class Real(Protocol):
    """Tells where paths lead, so that no link can deceive a rule: see `adapters/realpath.py`."""

    def __call__(self, path: str) -> str | None:
        """Return where a path leads, its links resolved; None where that is unknown."""

    def readings(self, path: str) -> Sequence[str]:
        """Return all places to which a path may lead, by what programs make of its spelling: `~`, blanks, `..`."""

    def below(self, path: str) -> Sequence[str] | None:
        """Return what lies in the folders to which a path may lead; None where it is more than can be looked at."""

    def leads_out(self, path: str) -> bool:
        """Return whether a link within the agent's folder leads a path out of it."""


class BadValue(UsageError):
    """An invalid value; `keys` lead to its place in the document."""

    def __init__(self, keys: tuple[str, ...], problem: str, hint: str | None = None) -> None:
        super().__init__(problem, hint)
        self.keys = keys


def parse_policy(value: Any, place: str = "permissions") -> Rules:
    """Return the rules of a policy: `allow`, `deny`, `ask` or `own`, or a list of {tool, pattern, answer}.

    >>> parse_policy("deny")
    [{'tool': '*', 'pattern': '*', 'answer': 'deny'}]
    >>> parse_policy([{"tool": "Bash", "pattern": "git status", "answer": "allow"}])
    [{'tool': 'Bash', 'pattern': 'git status', 'answer': 'allow'}]

    Raises:
        BadValue: It is neither; the message names `place` and the rule, `keys` lead to it.
    """
    if value is None:
        return []
    if isinstance(value, str) and value in POLICIES:
        return [{"tool": "*", "pattern": "*", "answer": value}]
    if not isinstance(value, list):
        raise BadValue((place,), f"{place} must be allow, deny, ask, own or a list of rules, not {value!r}"[:300])
    return [_rule(item, place, number) for number, item in enumerate(value)]


def _rule(item: Any, place: str, number: int) -> dict[str, str]:
    at, called = (place, str(number)), f"rule {number + 1} of {place}"
    if not isinstance(item, Mapping):
        raise BadValue(at, f"{called} must be a mapping {{tool, pattern, answer}}, not {item!r}"[:300])
    for key in item:
        if key not in _KEYS:
            raise BadValue((*at, str(key)), f"{called} has an unknown key {key!r}; known: {', '.join(_KEYS)}")
    rule = {"tool": item.get("tool", "*"), "pattern": item.get("pattern", "*"), "answer": item.get("answer")}
    for key, text in rule.items():
        if not isinstance(text, str) or not 0 < len(text) <= _LONGEST:
            raise BadValue((*at, key), f"{called}: {key} must be text, not {text!r}"[:300])
    if rule["answer"] not in (POLICIES if is_for_all(rule) else ANSWERS):
        raise BadValue((*at, "answer"), f"{called}: answer must be allow, deny or ask, not {rule['answer']!r}"[:300])
    return {key: str(text) for key, text in rule.items()}


def answer_by(
    rules: Sequence[Mapping[str, str]],
    tool: str,
    arguments: Mapping[str, Any] | None,
    real: Real | None = None,
    also: str | None = None,
) -> str:
    """Return the answer of the first rule that matches a tool call: allow, deny, or ask; ask where none does.

    Args:
        also: Another name of the tool, by which a rule may know it as well.
        real: If given, an allow rule must match a path and what it leads to; a deny or ask rule only one of them.
            A rule's own folder may be a link, but in an allow rule not one that leads out of the agent's folder.

    >>> rules = parse_policy([{"tool": "Bash", "pattern": "git *", "answer": "allow"}])
    >>> answer_by(rules, "Bash", {"command": "git status"})
    'allow'
    >>> answer_by(rules, "Bash", {"command": "git status; rm -rf /"})
    'ask'
    """
    rule = first_matching(rules, tool, arguments, real, also)
    answer = "ask" if rule is None else rule["answer"]
    return "ask" if answer == OWN else answer


def first_matching(
    rules: Sequence[Mapping[str, str]],
    tool: str,
    arguments: Mapping[str, Any] | None,
    real: Real | None = None,
    also: str | None = None,
) -> Mapping[str, str] | None:
    """Return the first rule that matches a tool call, as `decide` takes it; None where none does."""
    try:
        touched = _Touched([tool, *filter(None, (also,))], arguments or {}, real)
    except RecursionError:
        return _UNCLEAR
    is_unclear = False
    for rule in rules:
        if touched.falls_under(rule):
            return _stricter(rule) if is_unclear else rule
        is_unclear = is_unclear or touched.might_fall_under(rule)
    return _UNCLEAR if is_unclear else None


def _stricter(rule: Mapping[str, str]) -> Mapping[str, str]:
    """Return what holds where a rule before this one may forbid the call: it is asked about, if this one does not deny.

    It holds for this call alone: beside a rule for every call some calls would be free.
    """
    return {**_UNCLEAR, "answer": "deny"} if rule["answer"] == "deny" else _UNCLEAR


def policy_in(rules: Sequence[Mapping[str, str]]) -> str:
    """Return what rules say of a call of which none of them speaks by its tool or pattern: allow, deny, ask or own.

    >>> policy_in([*parse_policy([{"tool": "Bash", "pattern": "rm *", "answer": "deny"}]), *parse_policy("own")])
    'own'
    """
    return next((rule["answer"] for rule in rules if is_for_all(rule)), "ask")


def is_allowing(rule: Mapping[str, str]) -> bool:
    """Return whether something is done unasked by a rule that is not done without it."""
    return rule.get("answer") in ("allow", OWN)


def denies(rules: Sequence[Mapping[str, str]]) -> bool:
    """Return whether any of the rules denies something."""
    return any(rule["answer"] == "deny" for rule in rules)


def first_beyond(rules: Rules, *given: Rules) -> Mapping[str, str] | None:
    """Return the first allow rule that none of the `given` lists covers; None where there is none.

    `own` counts as an allow rule; one that allows everything covers it. A list covers the allow rules in it, and all
    others if one of them is for everything. But each deny or ask rule
    that it has before that one must come before the covered rule as well.

    >>> ls, rm = ({"tool": "Bash", "pattern": f"{name} *", "answer": "allow"} for name in ("ls", "rm"))
    >>> first_beyond([ls, rm], [rm]) == ls
    True
    """
    for number, rule in enumerate(rules):
        if is_allowing(rule) and not any(_covers(one, rule, rules[:number]) for one in given):
            return rule
        if is_for_all(rule):
            return None  # No rule after it ever decides.
    return None


def _covers(given: Rules, rule: Mapping[str, str], before: Rules) -> bool:
    for number, one in enumerate(given):
        if is_allowing(one) and (one == rule or (is_for_all(one) and one["answer"] == "allow")):
            return all(other in before for other in given[:number] if not is_allowing(other))
    return False


def is_for_all(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule is for every call."""
    return not rule["tool"].strip("*") and not rule["pattern"].strip("*")


class _Touched:
    """What a tool call touches: its commands, its paths, its other telling arguments, and all arguments as JSON."""

    def __init__(self, names: Sequence[str], arguments: Mapping[str, Any], real: Real | None) -> None:
        self._names, self._real = [name.lower() for name in names], real
        pairs = list(_telling(arguments))
        self._commands = [_as_command(value) for key, value in pairs if key in _COMMANDS]
        self._others = [text for key, value in pairs if key in _OTHERS for text in _texts(value)]
        paths = [text for key, value in pairs if key in _PATHS for text in _texts(value)]
        self._paths = [*paths, *self._looked_into(arguments, paths)]
        self._json = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
        #: Whether it runs a command, by whatever name.
        self._runs = any(key == "command" for key, _ in pairs) and not self._is_one_of_server()
        self._searches = not _FINDS.isdisjoint(self._names) or not _SEARCHES.isdisjoint(self._names)
        self._searches = self._searches and OWN_SEARCH not in self._names
        self._ending = self._searched_ending(arguments)

    def _is_one_of_server(self) -> bool:
        return any(name.startswith(_OF_SERVERS) for name in self._names)

    def _looked_into(self, arguments: Mapping[str, Any], paths: Sequence[str]) -> list[str]:
        """Return the folders that a pattern of files names by itself."""
        pattern = arguments.get("pattern")
        if _FINDS.isdisjoint(self._names) or not isinstance(pattern, str):
            return []
        folder = pattern if ".." in pattern else pattern_folder(trimmed(pattern))
        if not folder:
            return []
        is_whole = folder.startswith(("/", "~"))
        return [folder] if is_whole or not paths else [posixpath.join(path, folder) for path in paths]

    def _searched_ending(self, arguments: Mapping[str, Any]) -> str:
        """Return the end of the names of all files that a search looks at; empty where it may look at others."""
        wanted = arguments.get("glob" if not _SEARCHES.isdisjoint(self._names) else "pattern")
        is_plain = isinstance(wanted, str) and re.fullmatch(r"[\w./*?-]+", wanted)
        return re.split(r"[*?/]", str(wanted))[-1] if is_plain else ""

    def falls_under(self, rule: Mapping[str, str]) -> bool:
        """Return whether a rule matches this call."""
        if not self._is_meant(rule):
            return False
        pattern = rule["pattern"]
        if not pattern.strip("*"):
            return True
        if rule["answer"] == "allow":
            return self._all_match(pattern)
        return self._any_matches(pattern) or (self._searches and self._may_meet(pattern))

    def might_fall_under(self, rule: Mapping[str, str]) -> bool:
        """Return whether a rule that forbids some paths is meant for this call, of which a path leads nowhere known."""
        real = self._real
        is_open = rule["answer"] != "allow" and real is not None and self._is_meant(rule)
        return is_open and any(real is not None and real(path) is None for path in self._paths)

    def _is_meant(self, rule: Mapping[str, str]) -> bool:
        """Return whether the tool is one of a rule's; one that forbids is read widely.

        What runs a command is a shell; and who searches files reads them, who finds files tells what may not be read.
        """
        wanted = rule["tool"].lower()
        if any(_is_tool(name, wanted) for name in self._names):
            return True
        if rule["answer"] == "allow":
            return False
        if self._runs and _is_tool("bash", wanted):
            return True
        is_of_paths = bool(rule["pattern"].strip("*"))
        reads = self._searches and (is_of_paths or not _SEARCHES.isdisjoint(self._names))
        return reads and _is_tool("read", wanted)

    def _may_meet(self, pattern: str) -> bool:
        """Return whether a search might meet a path that matches a pattern."""
        real = self._real
        for root in self._paths or ["."]:
            inside = real.below(root) if real else []
            if real is None or inside is None:
                if inside is None or fnmatchcase(f"{root.rstrip('/')}/", pattern):
                    return True
                continue
            places = [f"{place.rstrip('/')}/" for place in real.readings(root)]
            places += [place for place in inside if place.endswith(self._ending)]
            if _any_is_met(places, real(".") or "/", _real_patterns(pattern, real, narrowly=False)):
                return True
        return False

    def _all_match(self, pattern: str) -> bool:
        """Return whether the pattern matches everything that the call touches."""
        if any(not _is_simple(command) for command in self._commands):
            return False
        if pattern.startswith("{") or not (self._commands or self._paths or self._others):
            return fnmatchcase(self._json, pattern) and all(map(self._is_no_link, self._paths))
        return (
            all(fnmatchcase(command, pattern) for command in self._commands)
            and all(_path_matches(path, pattern) for path in self._paths)
            and (self._real is None or all(self._leads_to(path, pattern, narrowly=True) for path in self._paths))
            and all(_url_matches(text, pattern) for text in self._others)
        )

    def _any_matches(self, pattern: str) -> bool:
        pieces = [piece for command in self._commands for piece in (command, *_pieces(command))]
        paths = [posixpath.normpath(trimmed(path)) for path in self._paths]
        texts = (*pieces, *paths, *self._paths, *self._others, self._json)
        return any(fnmatchcase(text, pattern) for text in texts) or any(
            self._leads_to(path, pattern, narrowly=False) for path in self._paths
        )

    def _leads_to(self, path: str, pattern: str, *, narrowly: bool) -> bool:
        """Return whether a resolved path matches a pattern, as it is written or with its own folder resolved.

        Args:
            narrowly: In each reading of the path. And do not resolve the pattern's folder by links out of the agent's
                folder: somebody else may have made them.
        """
        if self._real is None or (narrowly and self._real(path) is None):
            return False
        patterns = _real_patterns(pattern, self._real, narrowly=narrowly)
        matching = [any(fnmatchcase(place, one) for one in patterns) for place in self._real.readings(path)]
        return all(matching) if narrowly else any(matching)

    def _is_no_link(self, path: str) -> bool:
        """Return whether a path leads exactly where it says, in each reading of it."""
        if self._real is None:
            return True
        said = posixpath.normpath(posixpath.join(self._real(".") or "/", path))
        return self._real(path) == said and all(place == said for place in self._real.readings(path))


def _any_is_met(places: Sequence[str], here: str, patterns: Sequence[str]) -> bool:
    """Return whether any path matches a pattern, as it is or from the agent's folder."""
    texts = (text for place in places for text in (place, place[len(here) + 1 :] if lies_in(place, here) else place))
    return any(fnmatchcase(text, pattern) for text in texts for pattern in patterns)


def _is_tool(tool: str, wanted: str) -> bool:
    return fnmatchcase(tool, wanted) or any(tool in names and wanted in names for names in _SAME)


def _telling(arguments: Any) -> Iterator[tuple[str, Any]]:
    """Yield the telling arguments at any depth, without recursion: they may be nested deeper than Python recurses."""
    waiting: list[Any] = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            for key, item in value.items():
                name = str(key).lower()
                if name in _COMMANDS or name in _PATHS or name in _OTHERS:
                    yield name, item
                if not isinstance(item, str):
                    waiting.append(item)
        elif isinstance(value, list | tuple):
            waiting.extend(item for item in value if not isinstance(item, str))


def _texts(value: Any) -> list[str]:
    """Return the texts of an argument; what is not text becomes JSON, which no narrow pattern matches by accident."""
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [item if isinstance(item, str) else json.dumps(item, default=str) for item in items]


# -- commands ------------------------------------------------------------------------------------------------


def _as_command(value: Any) -> str:
    """Return a command as one line of shell, without the shell that it is wrapped in."""
    command = value if isinstance(value, str) else shlex.join(_texts(value))
    wrapped = _WRAPPER.fullmatch(command.strip())
    return wrapped.group(1)[1:-1] if wrapped else command.strip()


def _is_simple(command: str) -> bool:
    """Return whether a line of shell can only run one program, with exactly the words that it shows."""
    return command.isprintable() and not _CONTROL.search(command)


def _pieces(command: str) -> list[str]:
    """Return the possible single commands in a line of shell: rather too many than too few."""
    return [piece.strip() for piece in re.split(r"[;&|<>`()\n\r{}'\"]|\$\(", command) if piece.strip()]


# -- paths and addresses -------------------------------------------------------------------------------------


def pattern_folder(pattern: str) -> str:
    """Return the folder in which a pattern of files is looked for: all before its first wildcard, by whole names.

    >>> [pattern_folder(pattern) for pattern in ("/etc/*.conf", "src/a*/b", "/etc", "*.py")]
    ['/etc/', 'src/', '/', '']
    """
    head, slash, _ = re.split(r"[*?\[{]", pattern, maxsplit=1)[0].rpartition("/")
    return head + slash


def _path_matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern; one that climbs (`..`) might lead anywhere, and never does."""
    return ".." not in path.split("/") and fnmatchcase(path, pattern)


def _real_patterns(pattern: str, real: Real, *, narrowly: bool) -> list[str]:
    """Return a pattern, and the same with the folder that it begins with resolved: in each reading, if not narrowly."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    folder, slash, _ = literal.rpartition("/")
    place = folder or slash or "."
    found = [real(place)] if narrowly else real.readings(place)
    if narrowly and real.leads_out(place):
        return [pattern]
    rest = pattern[len(folder) + len(slash) :]
    resolved = (re.sub(r"([*?\[])", r"[\1]", one.rstrip("/")) + "/" + rest for one in found if one is not None)
    return list(dict.fromkeys((pattern, *resolved)))


def _url_matches(text: str, pattern: str) -> bool:
    """Compare host with host: `https://*.example.org/*` must not match `https://evil.org/.example.org/`."""
    if "://" not in text:
        return fnmatchcase(text, pattern)
    host, rest = _split_url(text)
    wanted_host, wanted_rest = _split_url(pattern)
    return "://" in pattern and fnmatchcase(host, wanted_host) and fnmatchcase(rest, wanted_rest)


def _split_url(url: str) -> tuple[str, str]:
    scheme, mark, rest = url.partition("://")
    end = re.search(r"[/?#\\]", rest) if mark else None
    cut = end.start() if end else len(rest)
    return f"{scheme}{mark}{rest[:cut]}", rest[cut:]

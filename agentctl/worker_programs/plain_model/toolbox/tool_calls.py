"""Carries out the calls of a model: only tools that it has, and the very call that was shown to whoever allowed it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from agentctl.adapters.realpath import Resolver
from agentctl.domain.agent.own_tools import PREFIX
from agentctl.domain.agent.permissions import OWN_SEARCH, answer_by
from agentctl.domain.answers import DENIED_BY_RULE
from agentctl.domain.text.plaintext import beginning
from agentctl.drivers.values import list_in, object_in
from agentctl.lean import NamedTuple
from agentctl.worker_programs.plain_model.break_off import Interrupted
from agentctl.worker_programs.plain_model.history import UNKNOWN
from agentctl.worker_programs.plain_model.host_channel import SharedParts
from agentctl.worker_programs.plain_model.model.answer import ToolCall
from agentctl.worker_programs.plain_model.toolbox.file_tools import edit_of, put_file, read_file
from agentctl.worker_programs.plain_model.toolbox.own_delegation import DelegationTools
from agentctl.worker_programs.plain_model.toolbox.reachable_paths import Places, looked_into
from agentctl.worker_programs.plain_model.toolbox.tool_errors import ToolError
from agentctl.worker_programs.plain_model.toolbox.tool_processes import Output, look, run_shell
from agentctl.worker_programs.plain_model.toolbox.toolset import (
    COMMON,
    LONGEST_S,
    PARALLEL,
    SHELL_S,
    checked,
    own_name,
    rule_name,
)

_MOST_TEXT = 60_000
#: How many calls are carried out side by side: each search is a process.
_MOST_AT_ONCE = 8
_ALLOW_ALL = {"tool": "*", "pattern": "*", "answer": "allow"}


class Result(NamedTuple):
    """What a call came to; `status` is completed, failed, denied or cancelled."""

    text: str
    status: str = "completed"
    #: The file that it changed.
    file: str | None = None


class _RulesOf(NamedTuple):
    """Rules, and the name by which they know a tool."""

    tool: str
    rules: Sequence[Mapping[str, str]]

    def of_paths(self) -> _RulesOf:
        """Return those of them that are for some paths."""
        return _RulesOf(self.tool, [rule for rule in self.rules if str(rule.get("pattern", "*")).strip("*")])

    def forbids(self) -> bool:
        """Return whether any of them may keep a path from being met."""
        return any(rule.get("answer") != "allow" for rule in self.rules)


class Denied(Exception):
    """The person, or a rule, has denied it; the message says which."""


class ToolCalls:
    """The tools of one agent.

    Args:
        rules: The rules of its order, and those of each agent above it.
        outputs: The folder for whole outputs.
    """

    def __init__(
        self, shared: SharedParts, places: Places, has: Collection[str], delegation: DelegationTools | None,
        rules: tuple[Sequence[Mapping[str, str]], Sequence[Sequence[Mapping[str, str]]]], outputs: str,
    ) -> None:  # fmt: skip
        self._host, self._breaker, self._mask = shared
        self._places, self._has, self._delegation = places, has, delegation
        self._outputs, self._commands = outputs, 0
        self._rules = _telling(rules[0])
        self._denials = [[rule for rule in _telling(one) if rule.get("answer") == "deny"] for one in rules[1]]
        self._runs: dict[str, Callable[[str, dict[str, Any]], Result]] = {
            "read_file": self._read, "find": self._find, "search": self._search, "edit_file": self._edit,
            "write_file": self._write, "shell": self._shell, "ask_user": self._ask_user,
        }  # fmt: skip

    def run_all(self, calls: Sequence[ToolCall], done: Callable[[ToolCall, Result], object]) -> None:
        """Carry out the calls of one answer, and report each result in their order.

        Those that follow each other and only read run side by side. Once it is broken off, none begins any more.
        """
        waiting = list(calls)
        while waiting:
            group = [waiting.pop(0)]
            while waiting and len(group) < _MOST_AT_ONCE and _are_parallel(group[0], waiting[0]):
                group.append(waiting.pop(0))
            for call, result in zip(group, self._side_by_side(group), strict=True):
                done(call, result)

    def _side_by_side(self, group: Sequence[ToolCall]) -> list[Result]:
        if len(group) == 1:
            return [self._one(group[0])]
        results: dict[int, Result] = {}

        def run(number: int) -> None:
            results[number] = self._one(group[number])

        threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(group))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [results.get(number, Result("the tool failed", "failed")) for number in range(len(group))]

    def _one(self, call: ToolCall) -> Result:
        name = own_name(call.name)
        shown = call.arguments if call.arguments is not None else {"unreadable": call.raw[:2000]}
        self._host.call_begins(call.id, name, shown)
        try:
            result = self._checked(call, name)
        except Interrupted:
            result = Result(UNKNOWN if name not in PARALLEL else "Interrupted.", "cancelled")
        except Denied as denial:
            result = Result(str(denial), "denied")
        except (ToolError, OSError) as error:
            result = Result(f"Error: {error}", "failed")
        text = self._mask.text(result.text)
        text = beginning(text, _MOST_TEXT, f"\n[cut: {len(text)} characters]")
        result = result._replace(text=text or "(nothing)")
        self._host.call_ends(call.id, name, result.status, result.text, result.file)
        return result

    def _checked(self, call: ToolCall, name: str) -> Result:
        self._breaker.check()
        if call.arguments is None:
            raise ToolError("the arguments are not a JSON object: call it again with one")
        if self._delegation is not None and name not in self._runs and self._delegation.has(name):
            if self._said(self._rules_for(f"{PREFIX}{name}"), call.arguments) == "ask":
                self._ask(call.id, f"{PREFIX}{name}", call.arguments)
            return Result(*self._delegation.call(name, call.arguments, self._breaker))
        if name not in self._has:
            known = ", ".join([*sorted(self._has), *(self._delegation.names() if self._delegation else ())])
            raise ToolError(f"there is no tool {call.name!r}; there are: {known}"[:1000])
        return self._runs[name](call.id, checked(name, call.arguments))

    # -- permissions ---------------------------------------------------------------------------------------------

    def _ask(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> None:
        """Have a call permitted; raise `Denied` where it is not."""
        denial = self._host.permission(call_id, rule_name(tool), arguments, self._breaker)
        if denial is not None:
            raise Denied(denial)
        self._breaker.check()

    def _ask_to_read(self, call_id: str, tool: str, arguments: Mapping[str, Any], real: str) -> bool:
        """Have a call permitted that only reads: in its own folder it is free, unless a rule speaks of it.

        Returns whether somebody was asked.
        """
        # What it would touch, also where the call names no path or spells it otherwise; and a rule for what lies in a
        # folder is one for it.
        inside = [
            f"{path.rstrip('/')}/" for path in (real, _relative(real, self._places.folder)) if os.path.isdir(real)
        ]
        given = [os.path.expanduser(arguments["path"])] if "path" in arguments else []
        about = [{**arguments, "path": path} for path in (real, *given, *inside)]
        if "ask" not in [self._said(self._rules_for(tool), one) for one in about] and self._places.is_free(real):
            return False
        self._ask(call_id, tool, {**arguments, "path": self._places.shown(arguments.get("path", "."), real)})
        return True

    def _rules_for(self, tool: str) -> list[_RulesOf]:
        """Return the rules by which a call is judged, each with the name by which they know the tool.

        Who searches a file reads it, and who lists what may not be read tells of it.
        """
        lists = [self._rules, *self._denials]
        found = [_RulesOf(rule_name(tool), rules) for rules in lists]
        if tool in {"search", "find"}:
            found += [_RulesOf(COMMON["read_file"], rules) for rules in lists]
        if tool == "find":  # A rule against all reading says nothing of a path.
            found = [one if one.tool != COMMON["read_file"] else one.of_paths() for one in found]
        return found

    def _said(self, judging: Sequence[_RulesOf], about: Mapping[str, Any]) -> str:
        """Return what the rules say of a call that is free without them: allow or ask; raise `Denied` for a denial."""
        real_of = Resolver(self._places.folder)
        said = {answer_by([*rules, _ALLOW_ALL], name, about, real_of, OWN_SEARCH) for name, rules in judging}
        if "deny" in said:
            raise Denied(DENIED_BY_RULE)
        return "ask" if "ask" in said else "allow"

    # -- the tools -----------------------------------------------------------------------------------------------

    def _read(self, call_id: str, given: dict[str, Any]) -> Result:
        path = given["path"]
        real = self._places.real(path)
        self._places.check_read(path, real)
        self._ask_to_read(call_id, "read_file", given, real)
        self._places.check_same(path, real)
        return Result(read_file(real, max(1, given.get("offset", 1)), given.get("limit")))

    def _find(self, call_id: str, given: dict[str, Any]) -> Result:
        return self._look(call_id, "find", given)

    def _search(self, call_id: str, given: dict[str, Any]) -> Result:
        return self._look(call_id, "search", given)

    def _look(self, call_id: str, tool: str, given: dict[str, Any]) -> Result:
        path = given.get("path", ".")
        real = self._places.real(path)
        self._places.check_read(path, real)
        was_asked = self._ask_to_read(call_id, tool, given, real)
        self._places.check_same(path, real)
        with looked_into(real) as (folder, base, only):
            prefix = "" if base == self._places.folder else f"{_relative(base, self._places.folder)}/"
            order = {
                "what": tool, "base": base, "prefix": prefix, "pattern": given["pattern"], "only": only,
                "glob": given.get("glob"), "ignoreCase": given.get("ignore_case", False),
                "hidden": list(self._places.hidden), "folder": self._places.folder,
                "rules": [[one.tool, [*one.rules, _ALLOW_ALL]] for one in self._rules_for(tool) if one.forbids()],
                "wasAsked": was_asked,
            }  # fmt: skip
            found = look(order, folder, self._breaker)
        return Result(found or "Nothing was found.")

    def _edit(self, call_id: str, given: dict[str, Any]) -> Result:
        old, new, every = given["old_string"], given["new_string"], given.get("replace_all", False)
        if not old or old == new:
            raise ToolError("old_string is empty, or the same as new_string: nothing would change")
        real = self._places.real(given["path"])
        self._places.check_write(given["path"], real)
        if self._places.is_free(real):
            edit_of(real, old, new, every=every)  # Nobody is asked about an edit that cannot be made.
        self._ask(call_id, "edit_file", {**given, "path": self._places.shown(given["path"], real)})
        self._places.check_same(given["path"], real)
        was, becomes = edit_of(real, old, new, every=every)
        put_file(real, becomes, was)
        return Result(f"{given['path']} was changed.", file=real)

    def _write(self, call_id: str, given: dict[str, Any]) -> Result:
        real = self._places.real(given["path"])
        self._places.check_write(given["path"], real)
        self._ask(call_id, "write_file", {**given, "path": self._places.shown(given["path"], real)})
        self._places.check_same(given["path"], real)
        was_there = put_file(real, given["content"].encode("utf-8", "replace"))
        return Result(f"{given['path']} was {'replaced' if was_there else 'made'}.", file=real)

    def _shell(self, call_id: str, given: dict[str, Any]) -> Result:
        directory = given.get("directory", ".")
        folder = self._places.real(directory)
        seconds = min(max(1, given.get("timeout_seconds", SHELL_S)), LONGEST_S)
        about = {"directory": self._places.shown(directory, folder)} if "directory" in given else {}
        self._ask(call_id, "shell", {**given, **about})
        self._places.check_same(directory, folder)
        self._commands += 1
        # Not by the call's id: that is the model's.
        output = Output(f"{self._outputs}/{os.getpid()}-{self._commands}.txt", self._mask)
        ran = run_shell(given["command"], folder, seconds, self._breaker, output)
        if ran.timed_out:
            return Result(f"{ran.output}\n[stopped after {seconds} s]", "failed")
        if ran.code:
            how = f"signal {-ran.code}" if ran.code < 0 else f"exit code {ran.code}"
            return Result(f"{ran.output}\n[{how}]", "failed")
        return Result(ran.output)

    def _ask_user(self, call_id: str, given: dict[str, Any]) -> Result:
        options = [option for option in list_in(given.get("options")) if isinstance(option, str) and option.strip()]
        return Result(self._host.question(call_id, given["question"], options, self._breaker))


def _are_parallel(*calls: ToolCall) -> bool:
    return all(own_name(call.name) in PARALLEL for call in calls)


def _telling(rules: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the rules that speak of some calls: one for all of them is meant for what is asked about anyway."""
    return [
        rule
        for rule in map(object_in, rules)
        if str(rule.get("tool", "*")).strip("*") or str(rule.get("pattern", "*")).strip("*")
    ]


def _relative(base: str, folder: str) -> str:
    head = f"{folder.rstrip('/')}/"
    return base.removeprefix(head)

"""What Codex asks its client, as questions, and the answers in the words of its protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.answers import ALLOW, ALLOW_ALWAYS, DENY
from agentctl.drivers.codex.items import PATCH, SHELL, as_dict, as_list, as_text, changes_of, command_line, mcp_name
from agentctl.drivers.dialogue import Ask

ACCEPT, SESSION, DECLINE, CANCEL = "accept", "acceptForSession", "decline", "cancel"
_LABELS = {
    ACCEPT: "yes, this once",
    SESSION: "yes, and the same for the rest of the session",
    DECLINE: "no; the agent goes on without it",
    CANCEL: "no, and stop the agent",
}
#: Whatever else is offered changes Codex's own rules, or this program does not know it.
_MEANS = {ACCEPT: ALLOW, SESSION: ALLOW_ALWAYS, DECLINE: DENY, CANCEL: DENY}
_Answers = Mapping[str, str]


class Pending:
    """A request that waits: what is asked of whom, and how the answers become its response.

    Args:
        withdrawn: The response that withdraws it; None where the end of the turn does.
    """

    def __init__(
        self, request_id: Any, thread: str, asks: list[Ask], reply: Callable[[_Answers], Any], withdrawn: Any = None
    ) -> None:
        self.request_id, self.thread, self.asks, self.reply, self.withdrawn = request_id, thread, asks, reply, withdrawn
        self.answers: dict[str, str] = {}

    def take(self, key: str, answer: str) -> bool:
        """Take an answer; tell whether it was the last that was missing."""
        self.answers[key] = answer
        return all(ask.key in self.answers for ask in self.asks)


def pending_of(method: str, request_id: Any, params: Mapping[str, Any], item: Mapping[str, Any]) -> Pending | None:
    """Return what a request asks; `item` is what it is about, as far as it was told. None: it is not known."""
    maker = _MAKERS.get(method)
    thread = as_text(params.get("threadId")) or as_text(params.get("conversationId"))
    return maker(request_id, thread, params, item) if maker else None


def key_of(request_id: Any) -> str:
    """Return a request's key; ids are numbers or strings, and 0 is not "0"."""
    return json.dumps(request_id, sort_keys=True)


def _permission(
    request_id: Any,
    thread: str,
    tool: str,
    question: str,
    arguments: Mapping[str, Any],
    decisions: Mapping[str, tuple[str, Any]],
) -> Pending:
    """Return a request for permission; `decisions` is id -> (label, response), with a yes and a no among them."""
    options = [(name, label) for name, (label, _) in decisions.items()]
    key = key_of(request_id)
    means = {name: _MEANS.get(name, ALLOW_ALWAYS) for name in decisions}
    ask = Ask(key, question, options, tool, arguments, allow=ACCEPT, deny=DECLINE, means=means)

    def reply(answers: _Answers) -> Any:
        return decisions.get(answers[key], decisions[DECLINE])[1]

    return Pending(request_id, thread, [ask], reply, withdrawn=decisions[CANCEL][1])


def _command(request_id: Any, thread: str, params: Mapping[str, Any], item: Mapping[str, Any]) -> Pending:
    known = {"command", "cwd", "reason", "networkApprovalContext", "additionalPermissions", "kind"}
    arguments = {key: value for key, value in params.items() if key in known and value is not None}
    command = arguments["command"] = as_text(params.get("command")) or as_text(item.get("command"))
    reason = as_text(params.get("reason"))
    question = f"Run {_shown(command_line(command))}?" + (f" Its reason: {reason}" if reason else "")
    decisions = _usual() | _offered(params.get("availableDecisions"))
    return _permission(request_id, thread, SHELL, question, arguments, _wrapped(decisions))


def _file_change(request_id: Any, thread: str, params: Mapping[str, Any], item: Mapping[str, Any]) -> Pending:
    changes, root = changes_of(item), as_text(params.get("grantRoot"))
    arguments: dict[str, Any] = {"changes": changes, "reason": params.get("reason")}
    if root:
        arguments["grantRoot"] = root
    names = ", ".join(change["path"] for change in changes) or "files"
    question = f"Change {names}?" + (f" For the rest of the session, write anywhere below {root}." if root else "")
    decisions = _usual() | {SESSION: (_LABELS[SESSION], SESSION)}
    return _permission(request_id, thread, PATCH, question, arguments, _wrapped(decisions))


def _more_permissions(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> Pending:
    wanted = as_dict(params.get("permissions"))
    nothing = {"permissions": {}, "scope": "turn"}
    decisions = {
        ACCEPT: ("yes, for this turn", {"permissions": wanted, "scope": "turn"}),
        SESSION: (_LABELS[SESSION], {"permissions": wanted, "scope": "session"}),
        DECLINE: (_LABELS[DECLINE], nothing),
        CANCEL: ("no", nothing),
    }
    question = f"Grant more permissions? {as_text(params.get('reason'))}".strip()
    arguments = {"permissions": wanted, "cwd": params.get("cwd")}
    return _permission(request_id, thread, "request_permissions", question, arguments, decisions)


def _old_approval(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> Pending:
    """Return an approval in the words of the protocol's first version."""
    words = {ACCEPT: "approved", SESSION: "approved_for_session", CANCEL: "abort"}
    decisions: dict[str, tuple[str, Any]] = {name: (_LABELS[name], {"decision": word}) for name, word in words.items()}
    decisions[DECLINE] = (_LABELS[DECLINE], {"decision": {"denied": {"rejection": "the user said no"}}})
    changes, command = as_dict(params.get("fileChanges")), as_list(params.get("command"))
    if changes:
        arguments: dict[str, Any] = {"changes": [{"path": path} for path in changes]}
        return _permission(request_id, thread, PATCH, f"Change {', '.join(changes)}?", arguments, decisions)
    line = " ".join(map(str, command))
    arguments = {"command": line, "cwd": params.get("cwd")}
    return _permission(request_id, thread, SHELL, f"Run {_shown(line)}?", arguments, decisions)


def _usual() -> dict[str, tuple[str, Any]]:
    """Return what every approval takes; `decline` too, which Codex understands without offering it."""
    return {name: (_LABELS[name], name) for name in (ACCEPT, DECLINE, CANCEL)}


def _offered(available: Any) -> dict[str, tuple[str, Any]]:
    """Return the decisions that this one request offers beyond the usual ones."""
    found: dict[str, tuple[str, Any]] = {}
    for decision in as_list(available):
        name = decision if isinstance(decision, str) else next(iter(as_dict(decision)), "")
        if name in {"", ACCEPT, DECLINE, CANCEL}:
            continue
        unique = name if name not in found else f"{name}-{len(found)}"
        found[unique] = (_LABELS.get(name) or _offer_label(name, as_dict(as_dict(decision).get(name))), decision)
    return found


def _offer_label(name: str, value: Mapping[str, Any]) -> str:
    if name == "acceptWithExecpolicyAmendment":
        prefix = " ".join(map(str, as_list(value.get("execpolicy_amendment"))))
        return f"yes, and never ask again for what begins with `{prefix}` (kept in Codex's own rules)"
    if name == "applyNetworkPolicyAmendment":
        rule = as_dict(value.get("network_policy_amendment"))
        return f"{as_text(rule.get('action'))} {as_text(rule.get('host'))} from now on (kept in Codex's own rules)"
    return name


def _wrapped(decisions: Mapping[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    return {name: (label, {"decision": decision}) for name, (label, decision) in decisions.items()}


def _shown(command: Any) -> str:
    return f"`{as_text(command)}`" if command else "a command"


def _questions(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> Pending:
    asks: dict[str, Ask] = {}
    for question in map(as_dict, as_list(params.get("questions"))):
        name = as_text(question.get("id"))
        key = f"{key_of(request_id)}/{name}"
        asks[name] = Ask(key, _wording(question), options=_choices(question), other=question.get("isOther") is True)

    def reply(answers: _Answers) -> Any:
        return {"answers": {name: {"answers": [answers[ask.key]]} for name, ask in asks.items()}}

    return Pending(request_id, thread, list(asks.values()), reply)


def _wording(question: Mapping[str, Any]) -> str:
    text = as_text(question.get("question")) or as_text(question.get("header"))
    return (
        f"{text} (Codex calls the answer a secret; it is kept in a private file)" if question.get("isSecret") else text
    )


def _choices(question: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the options; their labels are what Codex wants to have back."""
    choices: dict[str, str] = {}
    for option in map(as_dict, as_list(question.get("options"))):
        label, description = as_text(option.get("label")), as_text(option.get("description"))
        if label:
            choices[label] = f"{label}: {description}" if description else label
    return list(choices.items())


def _elicitation(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> Pending:
    meta = as_dict(params.get("_meta"))
    if meta.get("codex_approval_kind") == "mcp_tool_call":
        return _mcp_approval(request_id, thread, params, meta)
    message = as_text(params.get("message")) or as_text(params.get("title"))
    question = f"{as_text(params.get('serverName'))}: {message} {as_text(params.get('url'))}".strip()
    schema = as_dict(params.get("requestedSchema"))
    fields = as_dict(schema.get("properties"))
    key = key_of(request_id)
    options = [(DECLINE, "give no answer")]
    if not fields:
        options.insert(0, (ACCEPT, "yes"))
    elif len(fields) == 1:
        options = [(value, value) for value in _values(next(iter(fields.values()))) if value != DECLINE] + options
    else:
        question += f" (as JSON: {json.dumps(fields)})"
    ask = Ask(key, question, options=options, other=bool(fields))

    def reply(answers: _Answers) -> Any:
        answer = answers[key]
        if answer == DECLINE:
            return {"action": DECLINE, "content": None}
        return {"action": ACCEPT, "content": _content(fields, answer)}

    return Pending(request_id, thread, [ask], reply, withdrawn={"action": CANCEL, "content": None})


def _mcp_approval(request_id: Any, thread: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> Pending:
    """Return the permission for a tool of an MCP server, which Codex asks for as an elicitation."""
    decisions: dict[str, tuple[str, Any]] = {ACCEPT: (_LABELS[ACCEPT], {"action": ACCEPT, "content": {}})}
    if "session" in as_list(meta.get("persist")):
        decisions[SESSION] = (_LABELS[SESSION], {"action": ACCEPT, "content": {}, "_meta": {"persist": "session"}})
    for name in (DECLINE, CANCEL):
        decisions[name] = (_LABELS[name], {"action": name, "content": None})
    tool = mcp_name(params.get("serverName"), meta.get("tool_name"))
    arguments = as_dict(meta.get("tool_params"))
    return _permission(request_id, thread, tool, as_text(params.get("message")) or f"Use {tool}?", arguments, decisions)


def _values(schema: Any) -> list[str]:
    """Return the values that a field may have, where they are few."""
    if as_dict(schema).get("type") == "boolean":
        return ["true", "false"]
    listed = as_list(as_dict(schema).get("enum"))
    named = [as_dict(one).get("const") for one in as_list(as_dict(schema).get("oneOf"))]
    return [value for value in dict.fromkeys(as_text(value) for value in [*listed, *named]) if value]


def _content(fields: Mapping[str, Any], answer: str) -> Any:
    """Return an answer as the form's content: its one field's value, or the JSON that was given."""
    if not fields:
        return {}
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        value = answer
    if isinstance(value, dict):
        return value
    name, schema = next(iter(fields.items()))
    return {name: answer if as_dict(schema).get("type") in {None, "string"} else value}


_MAKERS: dict[str, Callable[[Any, str, Mapping[str, Any], Mapping[str, Any]], Pending]] = {
    "item/commandExecution/requestApproval": _command,
    "item/fileChange/requestApproval": _file_change,
    "item/permissions/requestApproval": _more_permissions,
    "item/tool/requestUserInput": _questions,
    "mcpServer/elicitation/request": _elicitation,
    "execCommandApproval": _old_approval,
    "applyPatchApproval": _old_approval,
}

"""Translates Codex's requests into questions, and the answers into Codex's protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.agent.shell_line import shell_line
from agentctl.domain.question import ALLOW, ALLOW_ALWAYS, DENY
from agentctl.drivers.codex.items import PATCH, SHELL, is_told_whole, mcp_name, patch_arguments
from agentctl.drivers.dialogue import Ask
from agentctl.drivers.jsonrpc import request_key
from agentctl.drivers.order import OWN_PERMISSIONS
from agentctl.drivers.requests import Answers, ProgramRequest
from agentctl.drivers.values import list_in, object_in, text_in

ACCEPT, SESSION, DECLINE, CANCEL = "accept", "acceptForSession", "decline", "cancel"
_LABELS = {
    ACCEPT: "yes, this once",
    SESSION: "yes, and the same for the rest of the session",
    DECLINE: "no; the agent goes on without it",
    CANCEL: "no, and stop the agent",
}
#: Codex writes it into the rules of its home, which is the worker's own wherever a person is asked.
_HELD = f"in this run; under {OWN_PERMISSIONS} for good"
#: All others that Codex may offer count as ALLOW_ALWAYS: they change Codex's own rules, or are unknown here.
_MEANS = {ACCEPT: ALLOW, SESSION: ALLOW_ALWAYS, DECLINE: DENY, CANCEL: DENY}


def pending_of(
    method: str, request_id: Any, params: Mapping[str, Any], item: Mapping[str, Any]
) -> ProgramRequest | None:
    """Return a request as questions; None if it is unknown. `item` is what the request is about."""
    maker = _MAKERS.get(method)
    thread = text_in(params.get("threadId")) or text_in(params.get("conversationId"))
    return maker(request_id, thread, params, item) if maker else None


def _permission(
    request_id: Any,
    thread: str,
    tool: str,
    described: str,
    arguments: Mapping[str, Any],
    decisions: Mapping[str, tuple[str, Any]],
    *,
    is_cut: bool = False,
) -> ProgramRequest:
    """Return a request for permission; `decisions` is id -> (label, response), and includes a yes and a no.

    Args:
        is_cut: Codex has not told all of the call.
    """
    options = [(name, label) for name, (label, _) in decisions.items()]
    key = request_key(request_id)
    means = {name: _MEANS.get(name, ALLOW_ALWAYS) for name in decisions}
    ask = Ask(key, described, options, tool, arguments, allow=ACCEPT, deny=DECLINE, means=means, is_cut=is_cut)

    def reply(answers: Answers) -> Any:
        return decisions.get(answers[key], decisions[DECLINE])[1]

    return ProgramRequest(
        request_id, thread, [ask], reply, withdrawn=decisions[CANCEL][1], stopping=frozenset({CANCEL})
    )


def _command(request_id: Any, thread: str, params: Mapping[str, Any], item: Mapping[str, Any]) -> ProgramRequest:
    known = {"command", "cwd", "reason", "networkApprovalContext", "additionalPermissions", "kind"}
    arguments = {key: value for key, value in params.items() if key in known and value is not None}
    arguments["command"] = text_in(params.get("command")) or text_in(item.get("command"))
    reason = text_in(params.get("reason"))
    decisions = _usual_decisions() | _offered_decisions(params.get("availableDecisions"))
    return _permission(request_id, thread, SHELL, reason, arguments, _wrapped(decisions))


def _file_change(request_id: Any, thread: str, params: Mapping[str, Any], item: Mapping[str, Any]) -> ProgramRequest:
    root = text_in(params.get("grantRoot"))
    arguments = {**patch_arguments(item), "reason": params.get("reason")}
    if root:
        arguments["grantRoot"] = root
    described = f"for the rest of the session, write anywhere below {root}" if root else ""
    decisions = _usual_decisions() | {SESSION: (_LABELS[SESSION], SESSION)}
    is_cut = not is_told_whole(item)
    return _permission(request_id, thread, PATCH, described, arguments, _wrapped(decisions), is_cut=is_cut)


def _more_permissions(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> ProgramRequest:
    wanted = object_in(params.get("permissions"))
    nothing = {"permissions": {}, "scope": "turn"}
    decisions = {
        ACCEPT: ("yes, for this turn", {"permissions": wanted, "scope": "turn"}),
        SESSION: (_LABELS[SESSION], {"permissions": wanted, "scope": "session"}),
        DECLINE: (_LABELS[DECLINE], nothing),
        CANCEL: ("no", nothing),
    }
    arguments = {"permissions": wanted, "cwd": params.get("cwd")}
    return _permission(request_id, thread, "request_permissions", text_in(params.get("reason")), arguments, decisions)


def _old_approval(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> ProgramRequest:
    """Return an approval in the words of the protocol's first version."""
    words = {ACCEPT: "approved", SESSION: "approved_for_session", CANCEL: "abort"}
    decisions: dict[str, tuple[str, Any]] = {name: (_LABELS[name], {"decision": word}) for name, word in words.items()}
    decisions[DECLINE] = (_LABELS[DECLINE], {"decision": {"denied": {"rejection": "the user said no"}}})
    if "fileChanges" in params:
        item = {
            "changes": [_old_change(path, object_in(one)) for path, one in object_in(params["fileChanges"]).items()]
        }
        return _permission(
            request_id, thread, PATCH, "", patch_arguments(item), decisions, is_cut=not is_told_whole(item)
        )
    line = shell_line([*map(str, list_in(params.get("command")))])
    arguments = {"command": line, "cwd": params.get("cwd")}
    return _permission(request_id, thread, SHELL, "", arguments, decisions)


def _old_change(path: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change of a file as the later version has it."""
    text = change.get("unified_diff") if change.get("type") == "update" else change.get("content")
    return {"path": path, "kind": {"type": change.get("type"), "move_path": change.get("move_path")}, "diff": text}


def _usual_decisions() -> dict[str, tuple[str, Any]]:
    """Return the decisions of every approval; Codex understands `decline` although it does not offer it."""
    return {name: (_LABELS[name], name) for name in (ACCEPT, DECLINE, CANCEL)}


def _offered_decisions(available: Any) -> dict[str, tuple[str, Any]]:
    """Return the decisions that a request offers in addition to the usual ones."""
    found: dict[str, tuple[str, Any]] = {}
    for decision in list_in(available):
        name = decision if isinstance(decision, str) else next(iter(object_in(decision)), "")
        if name in {"", ACCEPT, DECLINE, CANCEL}:
            continue
        unique = name if name not in found else f"{name}-{len(found)}"
        found[unique] = (_LABELS.get(name) or _offer_label(name, object_in(object_in(decision).get(name))), decision)
    return found


def _offer_label(name: str, value: Mapping[str, Any]) -> str:
    if name == "acceptWithExecpolicyAmendment":
        prefix = shell_line([*map(str, list_in(value.get("execpolicy_amendment")))])
        return f"yes, and never ask again for commands that begin with `{prefix}` ({_HELD})"
    if name == "applyNetworkPolicyAmendment":
        rule = object_in(value.get("network_policy_amendment"))
        return f"{text_in(rule.get('action'))} {text_in(rule.get('host'))} from now on ({_HELD})"
    return name


def _wrapped(decisions: Mapping[str, tuple[str, Any]]) -> dict[str, tuple[str, Any]]:
    return {name: (label, {"decision": decision}) for name, (label, decision) in decisions.items()}


def _questions(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> ProgramRequest:
    asks: dict[str, Ask] = {}
    for question in map(object_in, list_in(params.get("questions"))):
        name = text_in(question.get("id"))
        key = f"{request_key(request_id)}/{name}"
        asks[name] = Ask(key, _wording(question), options=_choices(question), other=question.get("isOther") is True)

    def reply(answers: Answers) -> Any:
        return {"answers": {name: {"answers": [answers[ask.key]]} for name, ask in asks.items()}}

    return ProgramRequest(request_id, thread, list(asks.values()), reply)


def _wording(question: Mapping[str, Any]) -> str:
    text = text_in(question.get("question")) or text_in(question.get("header"))
    return (
        f"{text} (Codex calls the answer a secret; it is kept in a private file)" if question.get("isSecret") else text
    )


def _choices(question: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the options; their ids are the labels, which Codex expects as answers."""
    choices: dict[str, str] = {}
    for option in map(object_in, list_in(question.get("options"))):
        label, description = text_in(option.get("label")), text_in(option.get("description"))
        if label:
            choices[label] = f"{label}: {description}" if description else label
    return list(choices.items())


def _elicitation(request_id: Any, thread: str, params: Mapping[str, Any], _: Mapping[str, Any]) -> ProgramRequest:
    meta = object_in(params.get("_meta"))
    if meta.get("codex_approval_kind") == "mcp_tool_call":
        return _mcp_approval(request_id, thread, params, meta)
    message = text_in(params.get("message")) or text_in(params.get("title"))
    question = f"{text_in(params.get('serverName'))}: {message} {text_in(params.get('url'))}".strip()
    schema = object_in(params.get("requestedSchema"))
    fields = object_in(schema.get("properties"))
    key = request_key(request_id)
    options = [(DECLINE, "give no answer")]
    if not fields:
        options.insert(0, (ACCEPT, "yes"))
    elif len(fields) == 1:
        options = [(value, value) for value in _values(next(iter(fields.values()))) if value != DECLINE] + options
    else:
        question += f" (as JSON: {json.dumps(fields)})"
    ask = Ask(key, question, options=options, other=bool(fields))

    def reply(answers: Answers) -> Any:
        answer = answers[key]
        if answer == DECLINE:
            return {"action": DECLINE, "content": None}
        return {"action": ACCEPT, "content": _content(fields, answer)}

    return ProgramRequest(request_id, thread, [ask], reply, withdrawn={"action": CANCEL, "content": None})


def _mcp_approval(request_id: Any, thread: str, params: Mapping[str, Any], meta: Mapping[str, Any]) -> ProgramRequest:
    """Return the request for permission to use a tool of an MCP server, which Codex sends as an elicitation."""
    decisions: dict[str, tuple[str, Any]] = {ACCEPT: (_LABELS[ACCEPT], {"action": ACCEPT, "content": {}})}
    if "session" in list_in(meta.get("persist")):
        decisions[SESSION] = (_LABELS[SESSION], {"action": ACCEPT, "content": {}, "_meta": {"persist": "session"}})
    for name in (DECLINE, CANCEL):
        decisions[name] = (_LABELS[name], {"action": name, "content": None})
    tool = mcp_name(params.get("serverName"), meta.get("tool_name"))
    arguments = object_in(meta.get("tool_params"))
    return _permission(request_id, thread, tool, text_in(params.get("message")), arguments, decisions)


def _values(schema: Any) -> list[str]:
    """Return the values that a field may have, if its schema lists them."""
    if object_in(schema).get("type") == "boolean":
        return ["true", "false"]
    listed = list_in(object_in(schema).get("enum"))
    named = [object_in(one).get("const") for one in list_in(object_in(schema).get("oneOf"))]
    return [value for value in dict.fromkeys(text_in(value) for value in [*listed, *named]) if value]


def _content(fields: Mapping[str, Any], answer: str) -> Any:
    """Return an answer as the form's content: the value of its only field, or the JSON object that was given."""
    if not fields:
        return {}
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        value = answer
    if isinstance(value, dict):
        return value
    name, schema = next(iter(fields.items()))
    return {name: answer if object_in(schema).get("type") in {None, "string"} else value}


_MAKERS: dict[str, Callable[[Any, str, Mapping[str, Any], Mapping[str, Any]], ProgramRequest]] = {
    "item/commandExecution/requestApproval": _command,
    "item/fileChange/requestApproval": _file_change,
    "item/permissions/requestApproval": _more_permissions,
    "item/tool/requestUserInput": _questions,
    "mcpServer/elicitation/request": _elicitation,
    "execCommandApproval": _old_approval,
    "applyPatchApproval": _old_approval,
}

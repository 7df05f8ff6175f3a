"""The messages of ACP, version 1, as its library describes them: no other module of the drivers imports the library.

The library's own connection is not used: a dialogue does no I/O, so that it can be recorded and replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

# The library's models inherit it: the validator of each is made when it is first used, and few are. That saves a sixth
# of the library's 0.4 s, for which a program that starts fast has to wait.
BaseModel.model_config = ConfigDict(defer_build=True)

from acp.meta import AGENT_METHODS, CLIENT_METHODS, PROTOCOL_VERSION  # noqa: E402
from acp.schema import (  # noqa: E402
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ClientCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationSchema,
    EnvVariable,
    HttpHeader,
    HttpMcpServer,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    McpServerStdio,
    PermissionOption,
    PromptResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectGroup,
    SessionModeState,
    TextContentBlock,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

from agentctl.domain.agent.own_tools import INHERIT_VARIABLE  # noqa: E402

BaseModel.model_config = ConfigDict()  # Not for the models of others.

__all__ = [
    "AGENT_METHODS", "CLIENT_METHODS", "PROTOCOL_VERSION",
    "AgentMessageChunk", "AgentPlanUpdate", "AgentThoughtChunk", "ElicitationSchema", "InitializeResponse",
    "PermissionOption", "PromptResponse", "SessionConfigOptionSelect", "SessionConfigSelectGroup", "SessionModeState",
    "ToolCallUpdate", "Usage", "UsageUpdate",
    "acp_greeting", "is_over_http", "meta_of", "read_as_model", "servers_as_settings", "session_params", "text_blocks",
]  # fmt: skip

_Model = TypeVar("_Model", bound=BaseModel)
#: An extension by which the adapters of Claude Code and Codex tell a turn that failed, and a retry, from a success: in
#: the protocol itself such a turn has ended like any other. To a client that understands it they tell a call by fewer
#: fields: the text of an edit only in the content of its call, and not the kind of a command that they ask about.
_UNDERSTOOD = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}}


def read_as_model(model: type[_Model], value: Any) -> _Model | None:
    """Return what a program sent as the library's model; None where it is something else."""
    try:
        return model.model_validate(value)
    except (ValidationError, RecursionError):
        return None


def acp_greeting(version: str) -> dict[str, Any]:
    """Return the parameters of `initialize`: what agentctl is, and what it can do for the program."""
    # Without elicitation some programs switch their tool for questions off. Neither files nor terminals are offered:
    # every known program has tools of its own, and those of a client would be a second way around its permissions.
    capabilities = ClientCapabilities(
        elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()), field_meta=_UNDERSTOOD
    )
    client = Implementation(name="agentctl", title="agentctl", version=version)
    return _dump(
        InitializeRequest(protocol_version=PROTOCOL_VERSION, client_capabilities=capabilities, client_info=client)
    )


def session_params(cwd: str, servers: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that `session/new`, `load` and `resume` share; `servers` as in an order."""
    params = {"cwd": cwd, "mcpServers": [_server(name, server) for name, server in servers.items()]}
    return {**params, "_meta": dict(meta)} if meta else params


def servers_as_settings(servers: Mapping[str, Any]) -> dict[str, Any]:
    """Return MCP servers as the settings of Claude Code have them, all tools shown at once."""
    return {name: {**_as_setting(server), "alwaysLoad": True} for name, server in servers.items()}


def _as_setting(server: Mapping[str, Any]) -> dict[str, Any]:
    if is_over_http(server):
        headers = {key: str(value) for key, value in (server.get("headers") or {}).items()}
        return {"type": "http", "url": str(server["url"]), **({"headers": headers} if headers else {})}
    environ = {key: str(value) for key, value in (server.get("env") or {}).items()}
    return {"type": "stdio", "command": str(server.get("command")), "args": _args(server), "env": environ}


def is_over_http(server: Mapping[str, Any]) -> bool:
    """Return whether a server of an order is reached over HTTP, and not started as a command."""
    return "url" in server


def _server(name: str, server: Mapping[str, Any]) -> dict[str, Any]:
    if is_over_http(server):
        headers = [HttpHeader(name=key, value=str(value)) for key, value in (server.get("headers") or {}).items()]
        return _dump(HttpMcpServer(type="http", name=name, url=str(server["url"]), headers=headers))
    given = dict(server.get("env") or {})
    if server.get("env_vars"):  # The protocol has no field for the names of variables to be passed on.
        given[INHERIT_VARIABLE] = "1"
    environ = [EnvVariable(name=key, value=str(value)) for key, value in given.items()]
    return _dump(McpServerStdio(name=name, command=str(server.get("command")), args=_args(server), env=environ))


def _args(server: Mapping[str, Any]) -> list[str]:
    return [str(arg) for arg in server.get("args") or ()]


def text_blocks(texts: list[str]) -> list[dict[str, Any]]:
    """Return texts as the content of a prompt."""
    return [_dump(TextContentBlock(type="text", text=text)) for text in texts]


def meta_of(model: Any) -> dict[str, Any]:
    """Return the `_meta` of anything that a program sent."""
    meta = getattr(model, "field_meta", None)
    return meta if isinstance(meta, dict) else {}


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)

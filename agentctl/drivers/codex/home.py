"""The home of Codex, its folder of settings, as it is given where a person or a rule decides about its calls.

All in it is the person's own, by links, but for what would decide in their place. The code relies on these facts,
observed with the version in `DRIVER`:

- A command that the rules in `rules/` allow runs unasked and outside the sandbox. No option of the app-server leaves
  them out. Of several rules that match, the strictest counts.
- So do the rules of a project that `projects` calls trusted. One that it calls untrusted is not even asked for its
  AGENTS.md; of one of which it says nothing, that is all that is read.
- A hook runs if `hooks.state` has its hash, under the path of the file that it stands in. One for `PermissionRequest`
  answers what a person would be asked. One for `PreToolUse` can forbid a call, and allows none.
- A server's tool is asked about in the mode `prompt`. Otherwise the server itself may call it harmless.
- `auth.json` and the databases are written where links lead, and so is what they do not lead to yet. A session is
  found below `sessions`, if there is a link in its place too; but not if the database of the threads names a path that
  is gone. A new database of that name is filled before a thread can begin, at 8 ms for each session.
- A login in the keyring is found only by the path of the person's own folder.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from typing import Any

from agentctl.domain.agent.permissions import answer_by
from agentctl.drivers.codex.toml import document
from agentctl.drivers.dialogue import HomeFolder, Replaced
from agentctl.drivers.order import ASKING, OWN_PERMISSIONS, READ_ONLY, Order
from agentctl.drivers.values import object_in, text_in
from agentctl.errors import Refused

#: The variables of the folder, and of that of the databases.
VARIABLE, DATABASES = "CODEX_HOME", "CODEX_SQLITE_HOME"
CONFIG, RULES, LOGIN = "config.toml", "rules", "auth.json"
#: What decides in a person's place: which projects' settings count, and that hooks need no trust.
_LEFT_OUT = ("projects", "bypass_hook_trust")
#: Of an agent that may change nothing also: commands of the person's that are run, for what they do outside of it.
_LEFT_OUT_FOR_READING = (*_LEFT_OUT, "notify")
#: Their tools' modes are not all known before they run.
OFF = {"apps": False, "plugins": False}
#: The event of the hooks that answer what a person is asked, as it stands in the name of a hook.
_ANSWERING = ":permission_request:"
_ASKED = "prompt"
#: Codex's name of its search, and that of others.
_SEARCH = ("web_search", "WebSearch")
_KEYRING = ("keyring", "auto")
_OWN = f"; {OWN_PERMISSIONS} start Codex with your settings as they are"


def replaced_home(order: Order) -> HomeFolder | None:
    """Return what is replaced; None where the person's own settings may decide, or nothing is restricted."""
    return FOLDER if order.stance in (ASKING, READ_ONLY) else None


def _replaced(order: Order, files: Mapping[str, bytes]) -> Replaced:
    """Return the files that stand in place of the person's."""
    return replaced_with(order, files, {})


def replaced_with(order: Order, files: Mapping[str, bytes], more: Mapping[str, Any]) -> Replaced:
    """Return them with more settings, each in place of the person's.

    Raises:
        Refused: The person's config cannot be read.
    """
    from agentctl.drivers.codex.rules import restrictions_in  # As late as `tomllib`.

    configured = config_in(order, files)
    config = {**own_config(order, configured), **more}
    rules = restrictions_in({name: data for name, data in files.items() if name.startswith(f"{RULES}/")})
    made = {CONFIG: document(config), f"{RULES}/default.rules": rules.text}
    notes = [f"{note}{_way_out(order)}" for note in _notes(rules.unread, configured, has_file=LOGIN in files)]
    # A path in the config starts from the folder of the config.
    databases = os.path.join(order.home["persons"], os.path.expanduser(text_in(configured.get("sqlite_home"))))
    return Replaced({name: text.encode() for name, text in made.items()}, os.path.normpath(databases), notes)


def config_in(order: Order, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the person's config.

    Raises:
        Refused: It cannot be read.
    """
    import tomllib  # Only for a running Codex.

    try:
        return tomllib.loads(files.get(CONFIG, b"").decode())
    except (ValueError, RecursionError) as error:
        raise Refused(f"the {CONFIG} of Codex cannot be read: {error}", hint=f"correct it{_way_out(order)}") from error


def own_config(order: Order, configured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the person's config without what would decide in their place."""
    is_reading = order.read_only
    persons, left_out = order.home["persons"], _LEFT_OUT_FOR_READING if is_reading else _LEFT_OUT
    config = {key: value for key, value in configured.items() if key not in left_out}
    features = {**object_in(config.get("features")), **OFF, **({"hooks": False} if is_reading else {})}
    servers = asked_servers(object_in(config.get("mcp_servers")))
    hooks = {**object_in(config.get("hooks")), "state": dict(_trusted(order, config))}
    # What the agent starts is told of the person's own folder.
    environment = object_in(config.get("shell_environment_policy"))
    environment = {**environment, "set": {**object_in(environment.get("set")), VARIABLE: persons}}
    config |= {"features": features, "hooks": hooks, "shell_environment_policy": environment}
    config |= {"mcp_servers": servers} if servers else {}
    config |= {"web_search": "disabled"} if _is_search_off(order) else {}
    return {**config, "sqlite_home": order.home["own"]}


def _is_search_off(order: Order) -> bool:
    """Return whether the search of the web is switched off, since Codex never asks about it.

    It is for whom rules deny it, and for an agent that may only read unless a rule allows it: a query tells others what
    the agent has read.
    """
    is_allowed = any(answer_by(order.permissions, name, {}) == "allow" for name in _SEARCH)
    return (order.read_only and not is_allowed) or any(
        answer_by(rules, name, {}) == "deny" for rules in (order.permissions, *order.denied_above) for name in _SEARCH
    )


def asked_servers(servers: Mapping[str, Any]) -> dict[str, Any]:
    """Return MCP servers, each of their tools to be asked about.

    >>> asked_servers({"a": {"url": "http://x", "tools": {"write": {"approval_mode": "approve"}}}})["a"]["tools"]
    {'write': {'approval_mode': 'prompt'}}
    """
    return {name: _asked(server) if isinstance(server, Mapping) else server for name, server in servers.items()}


def _asked(server: Mapping[str, Any]) -> dict[str, Any]:
    tools = {
        name: {**object_in(tool), "approval_mode": _ASKED} for name, tool in object_in(server.get("tools")).items()
    }
    return {**server, "default_tools_approval_mode": _ASKED, **({"tools": tools} if tools else {})}


def _trusted(order: Order, configured: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the state of the hooks that a person has trusted, without those that would answer for them.

    The name of a hook begins with the path of its file, which lies in another folder now.
    """
    own, places = order.home["own"], (order.home["persons"], order.home["resolved"])
    for name, state in object_in(object_in(configured.get("hooks")).get("state")).items():
        if _ANSWERING in name:
            continue
        place = next((place for place in places if name.startswith(f"{place}/")), None)
        yield (name if place is None else f"{own}{name[len(place) :]}"), state


def _way_out(order: Order) -> str:
    """Return what a person can say instead: no word of theirs loosens what an agent has that may only read."""
    return "" if order.read_only else _OWN


def _notes(unread: list[str], configured: Mapping[str, Any], *, has_file: bool) -> Iterator[str]:
    """Yield what does not count here of the person's own: rules that could not be read, a login that is not a file."""
    if unread:
        yield (
            f"rules of Codex that agentctl cannot read (it reads only literals) are left out: {', '.join(unread)}. What"
            " they forbid is not forbidden here"
        )
    store = text_in(configured.get("cli_auth_credentials_store"))
    if store in _KEYRING and not has_file:
        yield (
            f"a login of Codex in the keyring is not found from here (cli_auth_credentials_store is {store}): set"
            ' cli_auth_credentials_store = "file" and run `codex login` again'
        )


FOLDER = HomeFolder(
    variable=VARIABLE,
    usual=".codex",
    reads=(CONFIG, LOGIN, f"{RULES}/*.rules"),
    replaced=_replaced,
    omitted=(CONFIG, RULES),
    copied="state_*.sqlite",
    makes_databases=lambda order: [order.program, "app-server"],
    # May hold keys of servers.
    secret=(CONFIG,),
    folders=("archived_sessions", "sessions", "thread-writer-locks"),
    files=(
        LOGIN, "auth.lock", ".credentials.json", "history.jsonl", "installation_id", "models_cache.json",
        "session_index.jsonl", "version.json",
    ),
)  # fmt: skip

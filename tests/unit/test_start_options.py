"""Checks that every way to start a worker has exactly the options of the table, each of the same kind."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import pytest

from agentctl.domain.names import camel
from agentctl.drivers import order as orders
from agentctl.errors import UsageError
from agentctl.interfaces.cli.plain_lines import read_plain
from agentctl.interfaces.commands.model import command_model
from agentctl.interfaces.python import verbs
from agentctl.interfaces.python.executor import TaskExecutor
from agentctl.interfaces.python.spawn_options import SpawnOptions
from agentctl.interfaces.python.task import Task
from agentctl.operations.start import requests
from agentctl.operations.start.batch import KEYS, request_from
from agentctl.operations.start.options import (
    API,
    FLAG,
    GROUPS,
    NUMBER,
    OF_AGENTS,
    OF_WORKERS,
    OPTIONS,
    SUBTASK,
    TABLE,
    TEXT,
    TEXTS,
    TOOLS,
    WHOLE,
    Option,
)
from agentctl.supervision.worker import spec as specs
from agentctl.tools.start_arguments import MODEL, START_ARGUMENTS
from tests.commands import all_commands

#: A value of each kind, and the kind's name for a type checker, in the schema of a tool and on a command line.
VALUES: dict[str, Any] = {TEXT: "low", NUMBER: 1.5, WHOLE: 2, FLAG: True, TEXTS: ["a"], TABLE: {"a": "b"}}
TYPES = {
    "str": TEXT, "float": NUMBER, "int": WHOLE, "bool": FLAG, "Sequence[str]": TEXTS, "Mapping[str, str]": TABLE,
}  # fmt: skip
SCHEMAS = {"string": TEXT, "number": NUMBER, "integer": WHOLE, "boolean": FLAG}
WORDS = {
    command_model.TEXT: TEXT, command_model.NUMBER: NUMBER, command_model.SECONDS: NUMBER, command_model.WHOLE: WHOLE,
    command_model.FLAG: FLAG, command_model.TEXTS: TEXTS,
}  # fmt: skip

# What a surface has beside the options: the work itself, and how it is started.
OF_THE_REQUEST = {
    "argv", "work", "artifacts", "callers_cwd", "label", "delegation", "by_tool", "where", "retry_of", "carries_on",
    "queue", "said", "sole",
}  # fmt: skip
OF_THE_WORK = {"prompt", "order", "agent_id", "spec", "denied_above", "mcp_servers"}
OF_SPAWN = {
    "command", "prompt", "shell", "queue", "wait", "batch", "each", "roster", "resume_queue", "task", "root", "force",
    "json",
}  # fmt: skip
OF_SUBTASK = {
    "agent", "title", "intent", "artifact", "task_id", "no_wait", "wait_seconds", "task", "root", "force", "json",
}  # fmt: skip
#: Options of `spawn` that no entry of a batch has, and why; the command itself is the key `argv`.
NOT_OF_ONE = {
    "command": "the key is argv", "batch": "it names the entries", "each": "it makes many of one",
    "wait": "it is about the call", "json": "it is about what is printed", "task": "a batch is started in one task",
    "root": "a batch is started in one task", "force": "it is about the root",
    "roster": "hidden: a command of its own", "resume_queue": "hidden: a command of its own",
}  # fmt: skip
#: Parameters of the Python calls themselves, and so not in `SpawnOptions`.
OF_THE_CALL = {"agent", "timeout_seconds"}
#: Options whose text is parsed before a driver gets it.
READ = {"permissions", "output_schema"}
#: Options that `spec.json` keeps in another form: under which field, "" if another file keeps it.
ASIDE = {
    "name": "instance", "cwd": "cwd", "env": "env_names", "timeout_seconds": "timeout_s", "grace_seconds": "grace_s",
    "reuse": "", "worktree": "",
    **dict.fromkeys(("runner", "cpus", "memory", "gpus", "time", "partition", "runner_arg"), "placement"),
}  # fmt: skip


def fields_of(name: str) -> dict[str, str]:
    """Return the fields of a class in `requests.py` from its source: a lean named tuple keeps no annotations."""
    (found,) = [
        node for node in ast.walk(ast.parse(inspect.getsource(requests)))
        if isinstance(node, ast.ClassDef) and node.name == name
    ]  # fmt: skip
    fields = [node for node in found.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    return {node.target.id: _kind_of(ast.unparse(node.annotation)) for node in fields}  # type: ignore[union-attr]


def _kind_of(annotation: str) -> str:
    return next((TYPES[part] for part in annotation.split(" | ") if part in TYPES), annotation)


def words_of(name: str) -> dict[str, str]:
    """Return the parameters of a command, by their kinds."""
    return {one.name: WORDS.get(one.kind, one.kind) for one in all_commands()[name].all_parameters()}


def without(found: Mapping[str, str], others: set[str]) -> dict[str, str]:
    assert others <= found.keys(), "a parameter in the list of exceptions is gone"
    return {name: kind for name, kind in found.items() if name not in others}


def typed_options() -> dict[str, str]:
    hints = get_type_hints(SpawnOptions)
    written = {name: getattr(hint, "__name__", "") if isinstance(hint, type) else str(hint) for name, hint in
               hints.items()}  # fmt: skip
    return {name: _kind_of(text.replace("collections.abc.", "")) for name, text in written.items()}


def read_plainly() -> dict[str, str]:
    """Return the options of a plain line of `spawn`."""
    kinds, found = {bool: FLAG, int: WHOLE, float: NUMBER, str: TEXT, list: TEXTS}, dict[str, str]()
    for option in OPTIONS:
        flag = f"--{option.name.replace('_', '-')}"
        for words in ([flag, "x"], [flag, "1.5"], [flag, "2"], [flag]):
            given = read_plain(words, all_commands()["spawn"])
            if given is not None:
                found.setdefault(option.name, kinds[type(given[option.name])])
    return found


def in_orders() -> dict[str, str]:
    """Return the fields of a driver's order, with the kinds that it accepts."""
    kinds = {bool: FLAG, int: WHOLE, (int, float): NUMBER, str: TEXT}
    return {name: kinds.get(orders._KINDS.get(name, str), "read") for name in orders.Order._fields}


def in_specs() -> dict[str, str]:
    """Return the fields of `spec.json` that keep options unchanged."""
    kinds = {specs._is_text: TEXT, specs._is_number: NUMBER, specs._is_whole: WHOLE, specs._is_flag: FLAG,
             specs.are_texts: TEXTS}  # fmt: skip
    fields = {str(option.kept): option.name for option in OF_WORKERS if option.kept}
    return {fields[name]: kinds[specs._KINDS[name]] for name in specs.WorkerSpec._fields if name in fields}


def kinds_of(options: tuple[Option, ...], where: str = "") -> dict[str, str]:
    return {option.name: option.kind for option in options if not where or where in option.also}


#: Surface -> the options that it has according to the table, and those that it really has.
SURFACES: dict[str, tuple[dict[str, str], Callable[[], dict[str, str]]]] = {
    "SpawnRequest": (kinds_of(OF_WORKERS), lambda: without(fields_of("SpawnRequest"), OF_THE_REQUEST)),
    "AgentWork": (kinds_of(OF_AGENTS), lambda: without(fields_of("AgentWork"), OF_THE_WORK)),
    "spawn": (
        kinds_of(OPTIONS) | {"env": TEXTS},  # K=V
        lambda: without(words_of("spawn"), OF_SPAWN),
    ),
    "plain lines": (kinds_of(OPTIONS) | {"env": TEXTS}, read_plainly),
    "SpawnOptions": (
        {name: kind for name, kind in kinds_of(OPTIONS, API).items() if name not in OF_THE_CALL},
        typed_options,
    ),
    "subtask": (kinds_of(OPTIONS, SUBTASK), lambda: without(words_of("subtask"), OF_SUBTASK)),
    "tools": (
        kinds_of(OPTIONS, TOOLS),
        lambda: {name: SCHEMAS[schema["type"]] for name, schema in {**MODEL, **START_ARGUMENTS}.items()},
    ),
    "spec.json": ({option.name: option.kind for option in OF_WORKERS if option.kept}, in_specs),
    "order": (
        {option.name: "read" if option.name in READ else option.kind for option in OF_AGENTS},
        lambda: {option.name: in_orders().get(option.name, "missing") for option in OF_AGENTS},
    ),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_has_the_options_of_the_table(surface: str) -> None:
    said, found = SURFACES[surface]
    assert found() == said, f"an option is missing in {surface}, or is another there than in the table"


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_line_of_a_batch_sets_the_field_of_an_option_and_takes_its_kind_alone(option: Option) -> None:
    work = {"prompt": "Look at it"} if option in OF_AGENTS else {"argv": ["true"]}
    for key in {option.name, option.name.replace("_", "-"), camel(option.name)}:
        request = request_from({**work, key: VALUES[option.kind]}, "here")
        assert getattr(request.work if option in OF_AGENTS else request, option.name) == VALUES[option.kind]
    for kind in VALUES.keys() - {option.kind, WHOLE}:  # A whole number is a number.
        with pytest.raises(UsageError, match=f"{option.name} must be {option.kind}"):
            request_from({**work, option.name: VALUES[kind]}, "here")


def test_every_option_of_spawn_is_a_key_of_a_batch_or_says_why_not() -> None:
    options = {one.name for one in all_commands()["spawn"].all_parameters()}
    assert options >= NOT_OF_ONE.keys(), "an option in the list of exceptions is gone"
    assert options - NOT_OF_ONE.keys() == set(KEYS) - {"argv"}


@pytest.mark.parametrize("call", [Task.spawn, verbs.spawn, TaskExecutor.execute_task])
def test_a_call_of_a_program_has_the_options_that_are_no_typed_ones(call: Callable[..., object]) -> None:
    own = {name.replace("subagent_type", "agent") for name in inspect.signature(call).parameters}
    assert own & {option.name for option in OPTIONS} == OF_THE_CALL


@pytest.mark.parametrize("option", OF_WORKERS, ids=lambda option: option.name)
def test_what_was_said_of_a_worker_is_in_its_spec(option: Option) -> None:
    assert (option.kept is None) == (option.name in ASIDE), "either it is kept as it was said, or otherwise"
    assert (option.kept or ASIDE[option.name]) in {*specs.WorkerSpec._fields, ""}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_an_option_has_a_place_on_the_help_page(option: Option) -> None:
    assert option.group in GROUPS


def test_each_field_of_a_spec_has_a_kind() -> None:
    assert specs._KINDS.keys() == set(specs.WorkerSpec._fields)
    assert specs._OPTIONAL | specs._NOTHING | specs._OTHERWISE.keys() <= set(specs.WorkerSpec._fields)

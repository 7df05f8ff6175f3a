"""The options of a start, of which the table is `operations/start/options.py`, as typer declares them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from agentctl.cli.completing import complete_instances
from agentctl.cli.options import seconds
from agentctl.operations.start.options import (
    FLAG,
    NUMBER,
    OF_AGENTS,
    OF_WORKERS,
    TABLE,
    TEXT,
    TEXTS,
    WHOLE,
    Option,
)
from agentctl.operations.start.requests import AgentWork, SpawnRequest

F = TypeVar("F", bound=Callable[..., Any])

_TYPES: dict[str, Any] = {
    TEXT: str | None, NUMBER: float | None, WHOLE: int | None, FLAG: bool, TEXTS: list[str] | None,
    TABLE: list[str] | None,
}  # fmt: skip
_DEFAULTS = {**AgentWork._field_defaults, **SpawnRequest._field_defaults}
_COMPLETED = {"after": complete_instances}


def with_options(command: F) -> F:
    """Declare the options of the table in the place of the `options` of `spawn`: typer asks for its parameters."""
    own = {name: one.replace(kind=one.KEYWORD_ONLY) for name, one in inspect.signature(command).parameters.items()}
    del own["options"]
    agents, workers = map(_parameter, OF_AGENTS), map(_parameter, OF_WORKERS)
    ordered = [own.pop("command"), own.pop("prompt"), *agents, own.pop("shell"), *workers, *own.values()]
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return command


def _parameter(option: Option) -> inspect.Parameter:
    flag, default = f"--{option.name.replace('_', '-')}", _DEFAULTS.get(option.name)
    declared = typer.Option(
        flag, metavar=option.metavar, help=option.help, autocompletion=_COMPLETED.get(option.name),
        parser=seconds if option.name.endswith("_seconds") else None,
    )  # fmt: skip
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default if isinstance(default, int | float) else None,
        annotation=Annotated[_TYPES[option.kind], declared],
    )

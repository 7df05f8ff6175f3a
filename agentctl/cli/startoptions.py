"""Declares the options of a start for `spawn` and `subtask`, from the table that every surface shares."""

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import typer

from agentctl.cli import options as opt
from agentctl.cli.completing import complete_instances
from agentctl.operations.start.options import FLAG, NUMBER, TABLE, TEXT, TEXTS, WHOLE, Option
from agentctl.operations.start.requests import AgentWork, SpawnRequest

F = TypeVar("F", bound=Callable[..., Any])

_TYPES: dict[str, Any] = {
    TEXT: str | None, NUMBER: float | None, WHOLE: int | None, FLAG: bool, TEXTS: list[str] | None,
    TABLE: list[str] | None,
}  # fmt: skip
_DEFAULTS = {**AgentWork._field_defaults, **SpawnRequest._field_defaults}
_COMPLETED = {"after": complete_instances}


def with_start_options(options: Iterable[Option]) -> Callable[[F], F]:
    """Return a decorator that declares these options in place of a command's `**options`, which typer cannot read."""

    def declared(command: F) -> F:
        own = dict(inspect.signature(command).parameters)
        del own["options"]
        command.__signature__ = inspect.Signature([*own.values(), *map(_parameter, options)])  # type: ignore[attr-defined]
        return command

    return declared


def _parameter(option: Option) -> inspect.Parameter:
    flag, default = f"--{option.name.replace('_', '-')}", _DEFAULTS.get(option.name)
    declared = typer.Option(
        flag, metavar=option.metavar, help=option.help, autocompletion=_COMPLETED.get(option.name),
        rich_help_panel=option.group,
        parser=opt.seconds if option.name.endswith("_seconds") else None,
    )  # fmt: skip
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default if isinstance(default, int | float) else None,
        annotation=Annotated[_TYPES[option.kind], declared],
    )

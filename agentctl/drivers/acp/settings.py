"""Chooses the model, the effort and the mode of a session from what the program offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentctl.drivers.acp.wire import (
    SessionConfigOptionSelect,
    SessionConfigSelectGroup,
    SessionModeState,
    read_as_model,
)
from agentctl.drivers.values import list_in, object_in, text_in
from agentctl.lean import NamedTuple

MODEL, MODE, EFFORT = "model", "mode", "thought_level"
_SET_OPTION, _SET_MODE, _SET_MODEL = "session/set_config_option", "session/set_mode", "session/set_model"
_MOST_SHOWN = 12
#: Our words for effort, and the programs' words for each, the nearest first.
_EFFORTS = {
    "low": ("low", "minimal", "none", "off"),
    "medium": ("medium", "default", "normal"),
    "high": ("high", "xhigh", "max"),
}
_CALLED = {EFFORT: "an effort"}


class Setting(NamedTuple):
    """A request that sets something of a session."""

    method: str
    params: dict[str, Any]
    value: str


class NotOffered(Exception):
    """The program does not offer what was asked for; says what it offers instead."""


class _Choice(NamedTuple):
    """Something that can be chosen: how it is set, and (value, name) of what it can be."""

    method: str
    field: str
    fixed: dict[str, Any]
    current: str
    values: Sequence[tuple[str, str]]

    def to(self, session: str, value: str) -> Setting | None:
        """Return the request that chooses a value; None if it is chosen already."""
        if value == self.current:
            return None
        return Setting(self.method, {"sessionId": session, **self.fixed, self.field: value}, value)


class Offers:
    """What a session offers, by the reply that opened it."""

    def __init__(self, session: str, opened: Mapping[str, Any]) -> None:
        self.session = session
        options = [read_as_model(SessionConfigOptionSelect, one) for one in list_in(opened.get("configOptions"))]
        self._options = [option for option in options if option is not None]
        self._modes = read_as_model(SessionModeState, opened.get("modes"))
        self._models = object_in(opened.get("models"))

    def current(self, category: str) -> str:
        """Return what is chosen now; empty where the program does not say."""
        choice = self._choice(category)
        return choice.current if choice else ""

    def values(self, category: str) -> frozenset[str]:
        """Return all that can be chosen."""
        choice = self._choice(category)
        return frozenset(value for value, _ in choice.values) if choice else frozenset()

    def meant(self, category: str, wanted: str) -> str | None:
        """Return the value that is meant, by itself or by its name; None if there is none."""
        choice = self._choice(category)
        return _matching(choice.values, wanted) if choice else None

    def choose(self, category: str, wanted: str) -> Setting | None:
        """Return the request that sets a category to a value, by itself or by its name; None if it is set already.

        An effort is low, medium or high: the nearest one that there is.

        Raises:
            NotOffered: There is no such value.
        """
        choice = self._choice(category)
        if choice is None:
            raise NotOffered(f"it offers no choice of {_CALLED.get(category, f'a {category}')}")
        words = _EFFORTS.get(wanted, (wanted,)) if category == EFFORT else (wanted,)
        value = next((found for word in words if (found := _matching(choice.values, word)) is not None), None)
        if value is None:
            raise NotOffered(f"it knows {_listed(choice.values)}")
        return choice.to(self.session, value)

    def _choice(self, category: str) -> _Choice | None:
        """Return what can be chosen: by the option's category, then by its id, then in the older way."""
        for option in sorted(self._options, key=lambda one: one.category != category):
            if category in (option.category, option.id):
                fixed, current = {"configId": option.id}, option.current_value
                return _Choice(_SET_OPTION, "value", fixed, current, list(_values(option)))
        if category == MODE and self._modes is not None:
            modes = [(mode.id, mode.name) for mode in self._modes.available_modes]
            return _Choice(_SET_MODE, "modeId", {}, self._modes.current_mode_id, modes)
        if category == MODEL and self._models:
            models = [object_in(one) for one in list_in(self._models.get("availableModels"))]
            named = [(text_in(one.get("modelId")), text_in(one.get("name"))) for one in models]
            return _Choice(_SET_MODEL, "modelId", {}, text_in(self._models.get("currentModelId")), named)
        return None


def _values(option: SessionConfigOptionSelect) -> Iterator[tuple[str, str]]:
    for one in option.options:
        for value in one.options if isinstance(one, SessionConfigSelectGroup) else [one]:
            yield value.value, value.name


def _matching(values: Sequence[tuple[str, str]], wanted: str) -> str | None:
    """Return the value that is meant: by itself, by its name, or by its end after a slash if that is unambiguous."""
    word = wanted.casefold()
    for is_meant in (
        lambda value, _: value == wanted,
        lambda value, name: word in (value.casefold(), name.casefold()),
        lambda value, _: value.casefold().rpartition("/")[2] == word,
    ):
        found = [value for value, name in values if is_meant(value, name)]
        if len(found) == 1:
            return found[0]
    return None


def _listed(values: Sequence[tuple[str, str]]) -> str:
    names = [value for value, _ in values[:_MOST_SHOWN]]
    return ", ".join([*names, "..."] if len(values) > _MOST_SHOWN else names) or "none"

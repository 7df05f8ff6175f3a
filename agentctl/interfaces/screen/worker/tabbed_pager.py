"""A pager on a screen with tabs: where a key means nothing to it, the screen gets it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from agentctl.interfaces.screen.texts.pager import Pager


class TabbedPager(Pager):
    """A pager; `h`, `l` and the arrows change the tab unless long lines are not wrapped, and `b` is the screen's."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("b", "screen.since", "Base or turn", show=False)]

    def on_pager_grown(self, message: Pager.Grown) -> None:  # noqa: ARG002 - textual calls that of `Pager` too
        """Call nothing new in a text that does not grow, but is made anew."""
        if not self._watches:
            self._known = len(self.source)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys to the side to others where lines are wrapped."""
        if action == "sideways" and self._window.wraps:
            return False
        return super().check_action(action, parameters)

"""The footer: the keys that do something now.

It is made anew only if these are others, which each change of the focus would otherwise do, several times for one key.
"""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Footer


class KeysFooter(Footer):
    """The keys that do something now."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)
        self._drawn: tuple[tuple[str, str, bool], ...] | None = None

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Draw the keys, if they are others than those that are drawn."""
        keys = tuple(
            (one.binding.key, one.binding.description, one.enabled)
            for one in screen.active_bindings.values()
            if one.binding.show
        )
        if keys != self._drawn:
            self._drawn = keys if screen.app.app_focus else None
            super().bindings_changed(screen)

    async def recompose(self) -> None:
        """Make the keys anew, and let go of those before: as watchers of `compact` they would be kept for good."""
        await super().recompose()
        self.mutate_reactive(Footer.compact)

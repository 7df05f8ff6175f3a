"""The terminal that the screen is drawn on: it types and shows letters in the encoding of its locale.

Textual takes every terminal for one in UTF-8, and ends with a traceback at a byte that it cannot decode.
"""

from __future__ import annotations

import codecs
from functools import partial
from typing import Any

from rich.cells import cell_len
from textual.drivers import linux_driver

from agentctl.encoding import bytes_or_escape, typed_in

_HANDLER = "agentctl.drawn"
#: What is drawn in place of a character that the terminal lacks.
_STAND_INS = {
    **dict.fromkeys("│┃║‖▏▎▍▌▐▕", "|"), **dict.fromkeys("█▉▊▋▇▆▅■", "#"), **dict.fromkeys("▒░▓", ":"),
    **dict.fromkeys("─━═╌▁▂▃▄▔▀", "-"), **dict.fromkeys("·…", "."), **dict.fromkeys("●◆•", "*"), "○": "o", "✓": "+",
    "✗": "x", "←": "<", "→": ">", "↑": "^", "↓": "v", "↵": "<", "⏎": "<", "▸": ">", "▾": "v", "≥": ">", "┬": "+",
}  # fmt: skip


class OwnTerminal(linux_driver.LinuxDriver):
    """Speaks with a terminal in the encoding of its locale."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        codecs.register_error(_HANDLER, _drawn)
        self._file = open(2, "w", encoding=typed_in(), errors=_HANDLER, closefd=False)  # noqa: SIM115 - open as long as we are

    def run_input_thread(self) -> None:
        """Read what is typed; for a byte that cannot be decoded stands U+FFFD."""
        decoder = partial(codecs.getincrementaldecoder(typed_in()), "replace")
        linux_driver.getincrementaldecoder = lambda _: decoder  # type: ignore[attr-defined,assignment]
        super().run_input_thread()


def _drawn(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""Return what stands for characters that the terminal lacks: as wide as they are, or the line would be torn.

    >>> codecs.register_error("drawn", _drawn)
    >>> "\u2500\u2026 \u65e5 caf\udce9".encode("latin-1", "drawn")
    b'-. ?? caf\xe9'
    """
    assert isinstance(error, UnicodeEncodeError)
    shown, end = bytes_or_escape(error)
    if isinstance(shown, bytes):
        return shown, end
    lacking = error.object[error.start : error.end]
    return "".join(_STAND_INS.get(one) or "?" * cell_len(one) for one in lacking), error.end

"""The signals as the interpreter has them, as numbers: `signal` makes enumerations of them, 50 KB for each shim.

A type checker sees `signal` itself.
"""

from __future__ import annotations

from agentctl.lean import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
else:
    try:
        import _signal as signal
    except ImportError:
        import signal

__all__ = ["signal"]

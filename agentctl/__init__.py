"""agentctl: many agents at once, each an OS process, everything in plain files, no daemon.

The shim starts with this package too, so nothing may be imported here.
"""

from __future__ import annotations

__version__ = "0.1.0"

"""The Python interface: the operations of the command line, typed. Programs get it by `import agentctl`."""

from __future__ import annotations

from agentctl.encoding import require_utf8

require_utf8()

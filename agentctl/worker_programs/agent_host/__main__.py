"""The program of a worker that is an agent: `python -I -S .../agent_host/__main__.py DRIVER`.

The worker's folder is in the environment, as for every worker.
"""

from __future__ import annotations

import gc
import os
import sys

_PACKAGES = os.path.abspath(__file__).rsplit("/", 4)[0]
#: The exit code by which the shim knows that it is to be started again (`shim/unloaded.py`).
_UNLOADED = 75


def _run() -> int:
    from agentctl.encoding import ensure_utf8

    ensure_utf8()
    # asyncio then finds no `ssl`, as in a Python without OpenSSL: saves 8 ms and 3 MB per agent.
    sys.modules["ssl"] = None  # type: ignore[assignment]
    gc.disable()
    from agentctl.worker_programs.agent_host.main import main

    return main()


def _is_unloaded(error: ImportError | SyntaxError) -> bool:
    """Return whether a module of agentctl is missing, or was written in part."""
    missing = error.name if isinstance(error, ImportError) else error.filename
    return (missing or "").startswith(("agentctl", _PACKAGES))


if __name__ == "__main__":
    # -I -S: no site-packages, no script folder; only the standard library and this package are wanted.
    sys.path.insert(0, _PACKAGES)
    try:
        code = _run()
    except (ImportError, SyntaxError) as error:
        if not _is_unloaded(error):
            raise
        sys.stderr.write(f"agentctl is being replaced: {error}\n")
        code = _UNLOADED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Everything is on disk; the interpreter's cleanup at its end would take 10 ms.

"""Who is above a process is asked of `agentctl.adapters.descent`, which asks again where one of them ends meanwhile.

Elsewhere one that ends at the right moment hides all above it, and with them whose a process is.
"""

from __future__ import annotations

import re

from tests.support import REPOSITORY

PACKAGE = REPOSITORY / "agentctl"
ASKS = re.compile(r"\.ppid\b|\bgetppid\b|\.parents?\(\)")
#: Only tells the parent.
HARMLESS = {"supervision/life/process_tree.py"}


def test_nothing_else_goes_up_from_a_process() -> None:
    found = {
        str(file.relative_to(PACKAGE))
        for file in sorted(PACKAGE.rglob("*.py"))
        if ASKS.search(file.read_text(encoding="utf-8"))
    }
    assert found == {"adapters/descent.py", *HARMLESS}

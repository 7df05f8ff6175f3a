"""A relative HOME or XDG variable counts nowhere: one module reads them."""

from __future__ import annotations

import re

from tests.support import REPOSITORY

READ = re.compile(r'(?:environ|inherited)(?:\.get\(|\[)"(?:HOME|XDG_[A-Z_]+)"[\]),]|expanduser\(f?"|Path\.home\(')
#: What the drivers read is what their programs will read, in the environment that these are given.
READERS = {
    "drivers/claude/account.py",
    "drivers/codex/account.py",
    "drivers/codex/sessions.py",
}


def test_one_module_decides_which_folder_a_variable_names() -> None:
    package = REPOSITORY / "agentctl"
    found = {str(file.relative_to(package)) for file in package.rglob("*.py") if READ.search(file.read_text())}
    assert found == READERS

"""At stake: a module that an upgrade has just emptied is told as that, and not as a bug."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.parts import part
from agentctl.world_errors import missing_part


def test_what_an_emptied_module_lacks_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "emptied_in_an_upgrade.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as refused:
        part("emptied_in_an_upgrade", "DRIVER")
    told = "agentctl is incomplete: cannot import name 'DRIVER' from 'emptied_in_an_upgrade'"
    assert missing_part(refused.value) == told


def test_what_is_there_is_found() -> None:
    assert part("agentctl.errors", "ExitCode").REFUSED == 1

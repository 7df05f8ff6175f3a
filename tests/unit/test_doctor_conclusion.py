"""At stake: `doctor` ends with a verdict, whatever it has found."""

from __future__ import annotations

import pytest

from agentctl.operations.doctor.conclusion import conclusion_on
from agentctl.operations.where.findings import Finding, finding

NOTE, WARNING, ERROR = finding("note", "n"), finding("warning", "w"), finding("error", "e")
MENDED = finding("error", "m", fixed=True)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], "ok: nothing is wrong"),
        ([NOTE], "ok: nothing is wrong"),
        ([WARNING], "ok: 1 warning, nothing is broken"),
        ([WARNING, WARNING, NOTE], "ok: 2 warnings, nothing is broken"),
        ([ERROR], "note: 1 error: as told above"),
        ([WARNING, ERROR, WARNING], "note: 1 error, 2 warnings: as told above"),
        ([MENDED], "ok: 1 repaired, nothing is broken"),
        ([MENDED, ERROR], "note: 1 error, 1 repaired: as told above"),
    ],
    ids=str,
)
def test_each_mix_of_findings_has_its_words(found: list[Finding], words: str) -> None:
    verdict = conclusion_on(found, "/p")
    assert (f"{verdict.severity}: {verdict.what}", verdict.where) == (words, "/p")
    assert not verdict.is_error_left, "it counts what was found, and is nothing that was found"


def test_what_is_wrong_around_a_root_is_counted_and_does_not_hide_that_the_root_is_sound() -> None:
    assert conclusion_on([], "/p", around=[NOTE]).what == "nothing is wrong"
    sound = "1 warning, nothing is broken; nothing is wrong with this root"
    assert conclusion_on([], "/p", around=[WARNING]).what == sound
    assert conclusion_on([WARNING], "/p", around=[WARNING]).what == "2 warnings, nothing is broken"
    assert conclusion_on([WARNING], "/p", around=[ERROR]).what == "1 error, 1 warning: as told above"

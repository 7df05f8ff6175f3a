"""The conclusion of `doctor`, which it always ends with: how much is wrong, and whether anything is broken."""

from __future__ import annotations

from collections.abc import Sequence

from agentctl.operations.where.findings import Finding, finding


def conclusion_on(found: Sequence[Finding], where: object = "", *, around: Sequence[Finding] = ()) -> Finding:
    """Return what is to be said after everything was looked at; what was repaired is no longer wrong.

    Args:
        found: What was found there.
        where: A root; empty for the machine.
        around: What was found elsewhere: it must not hide that nothing is wrong with the root.
    """
    everything = [*around, *found]
    errors, warnings = _left("error", everything), _left("warning", everything)
    repaired = sum(one.fixed for one in everything)
    counts = [
        _counted(errors, "error"),
        _counted(warnings, "warning"),
        f"{repaired} repaired" if repaired else "",
    ]
    counted = ", ".join(filter(None, counts))
    if errors:
        return finding("note", f"{counted}: as told above", where)
    if not counted:
        return finding("ok", "nothing is wrong", where)
    is_clean = bool(around) and not _left("warning", found) and not any(one.fixed for one in found)
    return finding("ok", f"{counted}, nothing is broken{'; nothing is wrong with this root' * is_clean}", where)


def _left(severity: str, found: Sequence[Finding]) -> int:
    return sum(one.severity == severity and not one.fixed for one in found)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""

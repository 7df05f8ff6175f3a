"""One finding: what `doctor` reports about one thing, and `trust` about what it refuses."""

from __future__ import annotations

from agentctl.errors import at_terminal, steps_in_words, steps_of
from agentctl.lean import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.machine import FindingRow
    from agentctl.errors import Hint, Step


class Finding(NamedTuple):
    """One thing that was looked at."""

    #: `ok`, `note`, `warning` or `error`.
    severity: str
    what: str
    #: A path, or the name of what it is about; empty for the machine.
    where: str = ""
    #: What a person can do about it.
    steps: tuple[Step, ...] = ()
    fixed: bool = False

    @property
    def next(self) -> str:
        """Return the next steps as worded for a terminal; empty if there is nothing to do."""
        return steps_in_words(self.steps, at_terminal) or ""

    @property
    def is_error_left(self) -> bool:
        """Return whether it is an error that was not fixed."""
        return self.severity == "error" and not self.fixed

    def to_json(self) -> FindingRow:
        """Return it as `doctor --json` prints it."""
        return {
            "severity": self.severity, "what": self.what, "where": self.where, "next": self.next, "fixed": self.fixed,
        }  # fmt: skip


def finding(severity: str, what: str, where: object = "", next_: Hint = "", *, fixed: bool = False) -> Finding:
    """Return a finding; `where` may be a path of any kind."""
    return Finding(severity, what, str(where), steps_of(next_), fixed)

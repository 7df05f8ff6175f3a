"""One finding: what `doctor` reports about one thing, and `trust` about what it refuses."""

from __future__ import annotations

from agentctl.lean import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agentctl.domain.documents.machine import FindingRow


class Finding(NamedTuple):
    """One thing that was looked at."""

    #: `ok`, `note`, `warning` or `error`.
    severity: str
    what: str
    #: A path, or the name of what it is about; empty for the machine.
    where: str = ""
    #: What a person can do about it: a command, or a sentence.
    next: str = ""
    fixed: bool = False

    @property
    def is_error_left(self) -> bool:
        """Return whether it is an error that was not fixed."""
        return self.severity == "error" and not self.fixed

    def to_json(self) -> FindingRow:
        """Return it as `doctor --json` prints it."""
        return {
            "severity": self.severity, "what": self.what, "where": self.where, "next": self.next, "fixed": self.fixed,
        }  # fmt: skip


def finding(severity: str, what: str, where: object = "", next_: str = "", *, fixed: bool = False) -> Finding:
    """Return a finding; `where` may be a path of any kind."""
    return Finding(severity, what, str(where), next_, fixed)

"""`watch --hosts`: the lines of several hosts as they come, and which of them does not answer."""

from __future__ import annotations

from collections.abc import Iterator

from agentctl.domain.text.plaintext import plain
from agentctl.errors import AtTerminal, ExitCode, UsageError
from agentctl.interfaces.commands.model.command_model import Shown
from agentctl.interfaces.commands.model.far_line import far_line
from agentctl.interfaces.commands.model.invocation import Invocation
from agentctl.interfaces.hosts.host_names import hosts_named
from agentctl.interfaces.hosts.hosts_followed import BACK, END, LINE, LOST, NOTE, WARNING, Following, HostWord
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.where.lineage import shown_caller

if TYPE_CHECKING:
    from agentctl.interfaces.commands.model.command_model import Showing


def changes_across(call: Invocation, words: str, instance: str | None) -> Showing:
    """Yield what happens on several hosts until this process is interrupted, or none of them is left."""
    if instance is not None:
        raise UsageError("one worker is watched on one host", hint=AtTerminal(f"agentctl --host HOST watch {instance}"))
    hosts = hosts_named(words)
    left = {host.name for host in hosts}
    argv = far_line("watch", call, is_plain=True)
    with Following(hosts, lambda: argv, is_worker=shown_caller() is not None) as following:
        for word in following.words():
            if word is not None:
                yield from _said(call, word)
            if word is not None and (word.kind == END or (word.kind == LOST and not word.is_tried_again)):
                left.discard(word.host.name)
            if not left:
                break
    return ExitCode.REFUSED


def _said(call: Invocation, word: HostWord) -> Iterator[Shown]:
    name = plain(word.host.name)
    if word.kind == LINE:
        yield Shown(None, [f"{name}: {plain(word.text)}"])
    elif word.kind == NOTE:
        call.note(f"{name}: {plain(word.text)}")
    elif word.kind == WARNING:
        call.note(f"warning: {word.text}")
    elif word.kind == BACK:
        yield Shown(None, [f"{name} answers again"])
    elif word.kind == LOST and word.problem is not None:
        again = "; it is tried again" if word.is_tried_again else ""
        yield Shown(None, [f"{plain(word.problem.message)}{again}"])

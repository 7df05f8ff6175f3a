"""`watch --hosts`: the lines of several hosts as they come, and which of them does not answer."""

from __future__ import annotations

from agentctl.cli.across import place_options
from agentctl.cli.invocation import Invocation
from agentctl.cli.render import note, plain
from agentctl.errors import ExitCode, UsageError
from agentctl.hosts.following import BACK, END, LINE, LOST, NOTE, WARNING, Following, HostWord
from agentctl.hosts.naming import hosts_named
from agentctl.operations.where.lineage import shown_caller


def tell_changes_across(call: Invocation, words: str, instance: str | None) -> int:
    """Print what happens on several hosts until this process is interrupted, or none of them is left."""
    if instance is not None:
        raise UsageError("one worker is watched on one host", hint=f"agentctl --host HOST watch {instance}")
    hosts = hosts_named(words)
    left = {host.name for host in hosts}
    argv = ["watch", "--plain", *place_options(call)]
    with Following(hosts, lambda: argv, is_worker=shown_caller() is not None) as following:
        for word in following.words():
            if word is not None:
                _tell(word)
            if word is not None and (word.kind == END or (word.kind == LOST and not word.is_tried_again)):
                left.discard(word.host.name)
            if not left:
                break
    return ExitCode.REFUSED


def _tell(word: HostWord) -> None:
    name = plain(word.host.name)
    if word.kind == LINE:
        print(f"{name}: {plain(word.text)}", flush=True)
    elif word.kind == NOTE:
        note(f"{name}: {plain(word.text)}")
    elif word.kind == WARNING:
        note(f"warning: {word.text}")
    elif word.kind == BACK:
        print(f"{name} answers again", flush=True)
    elif word.kind == LOST and word.problem is not None:
        again = "; it is tried again" if word.is_tried_again else ""
        print(f"{plain(word.problem.message)}{again}", flush=True)

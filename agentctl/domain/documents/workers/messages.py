"""What is shown of messages to a worker: by `send`, and by `inbox`."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class SentMessage(TypedDict):
    """A message that was put into the inbox of a worker."""

    agentInstance: str
    messageId: str
    #: There is none any more.
    warning: None


#: Who has sent a message; the name of this key cannot be written in a class.
MessageSender = TypedDict("MessageSender", {"from": str})


class ReceivedMessage(MessageSender):
    """A message that a worker has got."""

    id: str
    at: str
    text: str
    #: True if a working agent is to get it now, and not in its next turn.
    interrupt: NotRequired[bool]
    #: True if an agent that was kept may end after it.
    close: NotRequired[bool]

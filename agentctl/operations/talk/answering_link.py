"""Carries out a link that answers a question: whoever has it gives that one answer, once, in the person's name."""

from __future__ import annotations

from agentctl.adapters.taskdir import Root
from agentctl.domain.notice.answer_links import buttons_for, question_digest, read_link
from agentctl.errors import Next, NotFound, Refused
from agentctl.lean import TYPE_CHECKING
from agentctl.operations.talk.answerers import Answerer
from agentctl.operations.talk.interacting import answer_open_question
from agentctl.operations.where.ownership import check_own
from agentctl.supervision.worker.questions import read_question

if TYPE_CHECKING:
    from agentctl.domain.documents.workers.questions import AcceptedAnswer

#: Whoever has the link acts for the person that let it be sent.
_THE_PERSON = Answerer(None, is_agent=False)


def answer_by_link(root: Root, signed: str, token: str, now: float) -> AcceptedAnswer:
    """Give the answer of a link; return what `answer_open_question` does.

    The first valid answer of all counts, whoever gives it: so a link counts once, and without a memory of used ones.

    Args:
        signed: The text that `answer_links.sign` has made.
        token: Of the server that is asked.
        now: Seconds since 1970.

    Raises:
        NotFound: There is no such question any more.
        Refused: It is not such a link, or has expired; the question was answered, or is another by now; its worker has
            ended; or no link may give that answer. Nothing was changed.
    """
    link = read_link(signed, token, now)
    worker = root.task(link.task).worker(link.instance)
    if not worker.path.exists():
        raise NotFound(f"there is no worker {link.instance} in {link.task} any more", hint=Next("look at questions"))
    check_own(worker.task)
    question = read_question(worker, link.question)
    if question is None:
        raise NotFound(f"{link.instance} asks no question {link.question}", hint=Next("look at questions"))
    if question_digest(question) != link.digest:
        raise Refused(
            f"{link.question} of {link.instance} is a different question by now", hint=Next("look at questions")
        )
    if link.answer not in {one.answer for one in buttons_for(question)}:
        raise Refused(
            f"no link may give this answer to {link.question} of {link.instance}", hint=Next("look at questions")
        )
    return answer_open_question(
        root, task=worker.task, instance=link.instance, question_id=link.question, answer=link.answer,
        answerer=_THE_PERSON, shown=question,
    )  # fmt: skip

"""At stake: a client's user allows exactly the call that they see, and no reply means more than they chose."""

from __future__ import annotations

import re
from typing import Any

import pytest
from acp.schema import (
    CreateFormSessionElicitationRequest,
    EmbeddedResourceContentBlock,
    RequestPermissionRequest,
    ResourceContentBlock,
    TextContentBlock,
)
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agentctl.adapters.taskdir import WorkerDir
from agentctl.domain.question import question_in
from agentctl.errors import UsageError
from agentctl.interfaces.editor.dialogs import (
    answer_advice,
    choice_of,
    chosen_option,
    dialog_form,
    dialog_words,
    filled,
    is_for_chat,
    way_to_answer,
)
from agentctl.interfaces.editor.prompt_text import prompt_text
from agentctl.interfaces.editor.session.session_view import EditorQuestion
from agentctl.interfaces.editor.updates.html_as_text import html_as_text
from agentctl.interfaces.words.value_words import shown_json

NOT_WHOLE = "This is not the whole call, so it cannot be allowed here."
MEANS = {"once": "allow", "always": "allow_always", "no": "deny"}
OPTIONS = [{"id": key, "label": key} for key in MEANS]


def question(*, is_own: bool = True, **more: Any) -> EditorQuestion:
    shown = {"kind": "select", "question": "May I?", **more}
    asked = question_in("q1", shown)
    assert asked is not None
    return EditorQuestion(WorkerDir("/root/tasks/t/agents/a"), asked, is_own)


def permission(arguments: Any, **more: Any) -> EditorQuestion:
    return question(tool="Bash", arguments=arguments, means=MEANS, options=OPTIONS, **more)


def kinds(asked: EditorQuestion) -> set[str]:
    choice = choice_of(asked, "call")
    assert choice is not None
    params = {"sessionId": "s", "toolCall": choice.tool_call, "options": choice.options}
    RequestPermissionRequest.model_validate(params)
    return {one["kind"] for one in choice.options}


def test_options_have_the_kinds_of_what_they_allow() -> None:
    assert kinds(permission({"command": "ls"})) == {"allow_once", "allow_always", "reject_once"}
    unknown = question(tool="Bash", options=[{"id": "x", "label": "x"}])
    assert kinds(unknown) == {"allow_always"}, "the most that it could allow"


@pytest.mark.parametrize(
    "asked",
    [
        permission({"command": "x" * 5000}),
        permission({"command": "\u200b" * 1000}),
        permission({"command": "ls"}, isCut=True),
        permission({"command": "ls"}, question="?" * 5000),
    ],
)
def test_what_cannot_be_seen_whole_can_only_be_denied(asked: EditorQuestion) -> None:
    assert kinds(asked) == {"reject_once"}
    assert "cannot be allowed here" in dialog_words(asked)


def content(asked: EditorQuestion) -> list[dict[str, Any]]:
    choice = choice_of(asked, "call")
    assert choice is not None
    kinds(asked)  # It is as the protocol has it.
    found: list[dict[str, Any]] = choice.tool_call["content"]
    return found


def texts(asked: EditorQuestion) -> list[str]:
    return [one["content"]["text"] for one in content(asked) if one["type"] == "content"]


def test_a_call_is_no_markdown_and_is_shown_as_what_it_would_do() -> None:
    command = {"command": "rm *.py **/*.js\necho `x`", "description": "**Look**", "odd": 1}
    said, run, rest = texts(permission(command, question="Allow Bash: rm **/a **/b?"))
    assert said == "a asks:\n```\nAllow Bash: rm **/a **/b?\n```"
    assert run == "```sh\nrm *.py **/*.js\necho `x`\n```"
    assert rest == '```json\n{"odd":1,"description":"**Look**"}\n```'
    fence = texts(permission({"command": "echo ```\n```\nAllowed."}))[1]
    assert fence == "````sh\necho ```\n```\nAllowed.\n````", "it cannot end its own code"


def test_what_a_program_says_about_a_call_takes_the_place_of_no_argument() -> None:
    for description in (["odd"], "told"):
        *_, rest, words = texts(permission({"command": "ls", "description": description}, described="It *lists*."))
        assert rest == f"```json\n{shown_json({'description': description})}\n```"
        assert words == "```\nin its own words: It *lists*.\n```"
    *_, run, rest = texts(permission({"command": "ls", "description": "told"}, described="told"))
    assert (run, rest) == ("```sh\nls\n```", '```json\n{"description":"told"}\n```')


def test_an_edit_that_asks_is_a_diff_of_the_protocol_with_what_nobody_sees_spelled_out() -> None:
    edit = {"file_path": "a.py", "old_string": "1\n\tx", "new_string": "2\n\tx\u200b", "replace_all": True}
    asked = permission(edit)._replace(asked=permission(edit).asked._replace(tool="Edit"))
    assert [one for one in content(asked) if one["type"] == "diff"] == [
        {"type": "diff", "path": "/a.py", "oldText": "1\n\tx", "newText": "2\n\tx\\u200b"}
    ]
    assert '"replace_all":true' in texts(asked)[-1]
    hidden = permission({**edit, "file_path": "a\u200b.py"})
    asked = hidden._replace(asked=hidden.asked._replace(tool="Edit"))
    assert [one["path"] for one in content(asked) if one["type"] == "diff"] == ["/a\\u200b.py"]
    spaces = permission({**edit, "old_string": "\tx", "new_string": "    x"})
    asked = spaces._replace(asked=spaces.asked._replace(tool="Edit"))
    assert [one["oldText"] for one in content(asked) if one["type"] == "diff"] == ["\\tx"]
    gone = permission({"changes": [{"path": "a\u200b\n.py", "kind": "delete"}]})
    asked = gone._replace(asked=gone.asked._replace(tool="Edit"))
    assert "```diff\ndelete a\\u200b\\n.py\n```" in texts(asked)
    long = {**edit, "new_string": "x" * 5000}
    asked = permission(long)._replace(asked=permission(long).asked._replace(tool="Edit"))
    assert {one["type"] for one in content(asked)} == {"content"}, "nothing is a diff of which a part is left out"


def test_a_question_is_markdown_as_its_agent_wrote_it() -> None:
    asked = question(question="## Which?\n\n- `a`", options=OPTIONS)
    assert dialog_words(asked) == "a asks:\n\n## Which?\n\n- `a`\n\n```\nonce: once\nalways: always\nno: no\n```"


def test_options_are_seen_letter_by_letter_whatever_the_question_ends_with() -> None:
    asked = question(question="Which?\n<!-- a <b> 1\n  <?x", options=[{"id": "*a*", "label": "rm **/a** b"}])
    assert dialog_words(asked) == "a asks:\n\nWhich?\n\\<!-- a \\<b> 1\n  \\<?x\n\n```\n*a*: rm **/a** b\n```"


def blocks(text: str) -> list[Token]:
    """Return what a text consists of, as a client with tables and raw HTML has it."""
    found = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    return [*found, *(inner for one in found for inner in one.children or ())]


def hides(text: str) -> bool:
    """Return whether a client that obeys or drops HTML would hide a part of a text."""
    return any(one.type in ("html_block", "html_inline") for one in blocks(text))


TAGS = (
    "<!-- a", "<?php", "<script>", "<div hidden>", "<details>\n<summary>Safe</summary>", "<b hidden>", "a <textarea> b",
    "- <div hidden>", "> <!-- a", "1. <details>", "a\n</p><style>", "\\\\<div hidden>", "` <div hidden>",
    "| a |\n|--|\n| <p> |", "- ```\n\n  ```\n  <div hidden>\n  ```", " ```\n```\n<div hidden>",
    "[a]( `) <div hidden> `", "` a\n`<div hidden>` b", "| a | b |\n|--|--|\n| ` | <p> ` |", "\\`<div hidden>`",
    "~~~\n```\n~~~\n<div hidden>",
)  # fmt: skip


@pytest.mark.parametrize("text", TAGS)
def test_no_html_in_a_question_hides_the_options(text: str) -> None:
    assert hides(text)
    words = dialog_words(question(question=f"Which?\n{text}", options=OPTIONS))
    assert not hides(words)
    assert "once: once\nalways: always\nno: no\n" in [one.content for one in blocks(words) if one.type == "fence"]


pieces = st.sampled_from([
    *("<div hidden>", "<!--", "-->", "<script>", "</p>", "<http://d.org>", "a<b>", "www.d.org/", "x", "|", "\\", "]"),
    *("`", "``", "```", "~~~", "\n```\n", "\n", "\n\n", " ", "   ", "    ", "- ", "> ", "1. "),
    *("[a](", "[a]: ", ")", "'"),
])  # fmt: skip


@given(st.lists(pieces, max_size=20).map("".join))
def test_no_html_is_left_of_any_text(text: str) -> None:
    shown = html_as_text(text)
    assert re.fullmatch(r"(\n(```+|~~~+))?", shown.replace("\\", "").removeprefix(text.replace("\\", "")))
    assert not hides(f"{shown}\n\n```\nyes\n```")


@pytest.mark.parametrize(
    "text",
    [
        "Which?\n```html\n<!-- a -->\n<?php\n``\n```\n`<b>` or ``a`<i>``",
        "~~~\n<div>\n```\n<p>\n~~~ \n- `Vec<T>`, (`<a>`)\n- a < b, <http://d.org>, Map<K, V>",
        "\\<div>",
    ],
)
def test_code_in_a_question_stays_as_it_is(text: str) -> None:
    assert html_as_text(text) == text


def test_the_kind_of_a_sub_agent_is_a_word_and_no_markdown() -> None:
    for kind, shown in (("helper\n<!--", "`helper <!--`"), ("*a* `b`", "`` *a* `b` ``"), ("x\u200b", "`x\\u200b`")):
        assert dialog_words(question(askedByType=kind, options=[])) == f"a ({shown}) asks: May I?"
        assert texts(permission({"command": "ls"}, askedByType=kind))[0].startswith(f"a ({shown}) asks:\n")
    assert dialog_words(question(askedByType="x" * 900)).startswith(f"a (`{'x' * 40} [cut: ")
    assert dialog_words(question(askedByType="\n")) == "a asks: May I?"


def test_no_option_looks_like_two() -> None:
    asked = question(options=[{"id": "y\nn", "label": "Yes\nno: No"}])
    assert dialog_words(asked) == "a asks: May I?\n\n```\ny n: Yes no: No\n```"
    choice = choice_of(asked, "call")
    assert choice is not None
    assert choice.options == [{"optionId": "y\nn", "name": "Yes no: No", "kind": "allow_once"}]


def test_a_command_that_answers_is_code_with_the_answers_below_it() -> None:
    asked = question(options=[{"id": "*a*", "label": "A"}, {"id": "b", "label": "B"}])
    asked = asked._replace(worker=WorkerDir("/srv/_data_/*x*/tasks/t/agents/a"))
    command = "agentctl answer a ANSWER --task t --root '/srv/_data_/*x*' --id q1"
    assert answer_advice(asked) == f"```\n{command}\nANSWER: '*a*', b\n```"
    assert way_to_answer(asked) == f"{command} (ANSWER: '*a*', b)"


@pytest.mark.parametrize(
    ("more", "command"),
    [
        ({}, "agentctl interact list --task t --root '/srv/*x*'"),
        ({"isCut": True}, "agentctl logs a --task t --root '/srv/*x*' --raw"),
    ],
)
def test_a_call_that_is_not_shown_whole_says_where_the_whole_is(more: dict[str, Any], command: str) -> None:
    asked = permission({"command": "x" * 5000}, **more)._replace(worker=WorkerDir("/srv/*x*/tasks/t/agents/a"))
    assert texts(asked)[-2:] == [f"{NOT_WHOLE} The whole call:", f"```\n{command}\n```"]
    assert dialog_words(asked).endswith(f"{NOT_WHOLE} The whole call:\n```\n{command}\n```")


def test_however_long_a_call_is_none_of_it_is_markdown_and_why_it_cannot_be_allowed_is_told() -> None:
    asked = permission({"command": "x" * 5000}, question="?" * 3000, described="<!-- **a**\n" * 2000)
    asks, *code, why, command = texts(asked)
    assert asks == "a asks:"
    assert len(code) > 1
    assert all(blocks(one)[0].type == "fence" and len(blocks(one)) == 1 for one in (*code, command))
    assert why == f"{NOT_WHOLE} The whole call:"


@pytest.mark.parametrize("text", ["Which?\n```\ny", "Apply it?\n~~~~diff\n" + "+ line\n" * 900 + "~~~~\nOr not?"])
def test_code_that_is_cut_in_a_question_ends_before_the_options(text: str) -> None:
    words = dialog_words(question(question=text, options=[{"id": "<!--", "label": "a"}, {"id": "b", "label": "b"}]))
    assert [one.content for one in blocks(words) if one.type == "fence"][1:] == ["<!--: a\nb: b\n"]


def test_what_a_program_says_about_a_call_of_any_kind_is_seen() -> None:
    asked = question(tool="query", arguments={"sql": "drop"}, means=MEANS, options=OPTIONS, described="It is needed")
    assert "in its own words: It is needed" in dialog_words(asked)
    assert dialog_words(question(kind="confirm", question="Go **on**?")) == "a asks: Go **on**?"


def test_what_nobody_would_see_is_seen() -> None:
    assert "\\u200b" in dialog_words(permission({"command": "./build\u200b.sh"}))


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner)
    )
)
def test_no_strange_reply_is_an_answer(reply: Any) -> None:
    choice = choice_of(permission({"command": "ls"}), "call")
    assert choice is not None
    assert chosen_option(choice, reply) is None
    assert filled(question(), reply) is None


def test_only_an_option_that_was_offered_is_an_answer() -> None:
    choice = choice_of(permission({"command": "x" * 5000}), "call")
    assert choice is not None

    def reply(option: Any) -> dict[str, Any]:
        return {"outcome": {"outcome": "selected", "optionId": option}}

    assert (
        chosen_option(choice, reply("no")),
        chosen_option(choice, reply("once")),
        chosen_option(choice, reply(5)),
    ) == ("no", None, None)
    assert chosen_option(choice, {"outcome": {"outcome": "cancelled", "optionId": "no"}}) is None


@pytest.mark.parametrize(
    ("asked", "content", "answer"),
    [
        (question(options=OPTIONS), {"answer": "once"}, "once"),
        (question(kind="confirm"), {"answer": False}, "no"),
        (question(kind="confirm"), {"answer": True}, "yes"),
        (question(kind="input"), {"answer": "red"}, "red"),
        (question(kind="input"), {"answer": " "}, None),
        (question(options=OPTIONS, multiple=True), {"answer": ["once", "no"]}, "once,no"),
        (question(options=OPTIONS, multiple=True), {"answer": [5]}, None),
        (question(options=OPTIONS, other=True), {"answer": "once", "other": "mine"}, "mine"),
        (question(options=OPTIONS), {"answer": "once", "other": "mine"}, "once"),
        (question(options=OPTIONS), {}, None),
    ],
)
def test_forms_and_what_they_answer(asked: EditorQuestion, content: dict[str, Any], answer: str | None) -> None:
    params = {"sessionId": "s", "mode": "form", "message": dialog_words(asked), "requestedSchema": dialog_form(asked)}
    CreateFormSessionElicitationRequest.model_validate(params)
    assert filled(asked, {"action": "accept", "content": content}) == answer
    assert filled(asked, {"action": "decline", "content": content}) is None


def test_only_a_question_of_its_own_for_a_text_ends_a_turn() -> None:
    assert is_for_chat(question(kind="input"), shows_forms=False)
    assert not is_for_chat(question(kind="input"), shows_forms=True)
    assert not is_for_chat(question(kind="input", is_own=False), shows_forms=False)
    assert not is_for_chat(question(kind="confirm"), shows_forms=False)
    assert not is_for_chat(permission({"command": "ls"}), shows_forms=False)


def test_a_prompt_is_its_text_with_what_is_attached() -> None:
    attached = EmbeddedResourceContentBlock.model_validate(
        {"type": "resource", "resource": {"uri": "file:///src/a%20b.md", "text": "```\nfence\n```"}}
    )
    link = ResourceContentBlock.model_validate({"type": "resource_link", "name": "c", "uri": "file:///src/c.py"})
    text = prompt_text(
        [TextContentBlock(type="text", text="Look at "), link, TextContentBlock(type="text", text=" and "), attached]
    )
    assert text == "Look at /src/c.py and /src/a b.md\n\n/src/a b.md:\n````\n```\nfence\n```\n````"


@given(st.lists(st.text(), max_size=4))
def test_any_text_is_passed_on_without_what_no_program_takes(texts: list[str]) -> None:
    blocks = [TextContentBlock(type="text", text=text) for text in texts]
    try:
        text = prompt_text(blocks)
    except UsageError:
        assert not "".join(texts).strip()
        return
    assert "\0" not in text
    text.encode()

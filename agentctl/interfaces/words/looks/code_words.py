"""The words of code by what they are, as Pygments reads it; only in languages whose rules were tried with odd code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from agentctl.interfaces.words.looks.look import TextLook, TextSpan, joined_spans, safe_span
from agentctl.lean import Any

#: What stands behind the fence -> Pygments' name of the language. C, C++ and Java are not among them: 20,000 line
#: breaks take their rules ten seconds.
_LANGUAGES = {
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "bash"),
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("javascript", "js", "jsx", "mjs"), "javascript"),
    **dict.fromkeys(("typescript", "ts", "tsx"), "typescript"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("rust", "rs"), "rust"),
    **dict.fromkeys(("go", "golang"), "go"),
    **dict.fromkeys(("diff", "patch"), "diff"),
    **{name: name for name in ("json", "toml", "ini", "sql", "ruby", "css")},
}
#: Longer code, or a longer line of it, is drawn without its words: some of Pygments' rules take four times as long for
#: twice as much, such as Python's for blank lines.
_LONGEST, _LONGEST_LINE = 6000, 1000


def is_coloured(language: str) -> bool:
    """Return whether code in a language is drawn by what its words are."""
    return language.lower() in _LANGUAGES


def code_lines(code: str, language: str) -> list[tuple[TextSpan, ...]]:
    r"""Return the lines of some code.

    >>> code_lines("x = 'a'", "python")[0][-1], code_lines("a\tb", "?")
    (TextSpan(text="'a'", look=<TextLook.STRING: 'string'>), [(TextSpan(text='a    b', look=<TextLook.CODE: 'code'>),)])
    """
    known = _LANGUAGES.get(language.lower())
    is_short = len(code) <= _LONGEST and max(map(len, code.split("\n"))) <= _LONGEST_LINE
    words = [*_words(code, known)] if known is not None and is_short else []
    if "".join(text for text, _ in words) != code:
        words = [(code, TextLook.CODE)]
    lines: list[list[TextSpan]] = [[]]
    for text, look in words:
        first, *rest = text.split("\n")
        lines[-1].append(safe_span(first, look))
        lines += [[safe_span(part, look)] for part in rest]
    return [joined_spans(line) for line in lines]


def _words(code: str, language: str) -> Iterator[tuple[str, TextLook]]:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped] # Heavy, and mostly nobody draws code.

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    looks = _looks()
    for kind, text in lexer.get_tokens(code):
        yield text, next((looks[one] for one in _kinds(kind) if one in looks), TextLook.CODE)


def _kinds(kind: Any) -> Iterator[Any]:
    """Yield a kind of word, then the ones that it is a kind of."""
    while kind is not None:
        yield kind
        kind = kind.parent


def _looks() -> dict[Any, TextLook]:
    from pygments.token import Token  # type: ignore[import-untyped]

    return dict(
        chain(
            (
                (Token.Keyword, TextLook.KEYWORD),
                (Token.Operator.Word, TextLook.KEYWORD),
                (Token.Comment, TextLook.COMMENT),
            ),
            ((Token.Literal.String, TextLook.STRING), (Token.Literal.Number, TextLook.NUMBER)),
            (
                (one, TextLook.NAME)
                for one in (Token.Name.Function, Token.Name.Class, Token.Name.Tag, Token.Name.Builtin)
            ),
            ((Token.Generic.Inserted, TextLook.ADDED), (Token.Generic.Deleted, TextLook.REMOVED)),
            ((Token.Generic.Subheading, TextLook.QUIET), (Token.Generic.Heading, TextLook.QUIET)),
        )
    )

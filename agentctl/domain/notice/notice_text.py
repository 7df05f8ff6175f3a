"""The words of notices: short, safe for a terminal, and without anything that looks like a secret.

They leave the machine. So nothing but names, states and the beginning of a question goes into them, and what looks
like a password, a key or a token is left out, also where it only looks like one.
"""

from __future__ import annotations

import re

from agentctl.domain.markdown.markdown_words import first_line_in_words
from agentctl.domain.text.plaintext import plain, shortened, whole

LEFT_OUT = "[left out]"
#: Of a longer text only this much is looked at.
_LOOKED_AT = 400
#: Names of secrets; and short ones that are also words, or parts of words, of other meanings.
_NAMED = (
    r"(?:pass(?:w(?:or)?d|phrase|code)|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|cookie"
    r"|authorization)"
)
_SHORT = r"(?:pass|pwd|pw)"
#: Nothing is looked for from the middle of a word: that would take a time that grows with the square of its length.
_BEGIN = r"(?<![\w-])"
#: Between quotes it may have spaces.
_VALUE = r"(?:\"(?:\\.|[^\"\\])*\"?|'[^']*'?|\S)\S*"
_GIVEN = rf"[\"']?\s*[:=]+>?\s*(?:(?:bearer|basic|token)\s+)?{_VALUE}"
#: What follows "the token is" in a sentence that does not give it away.
_STATES = (
    r"(?:not|now|still|set|unset|missing|expired|wrong|right|invalid|valid|required|needed|empty|known|unknown|stored|kept"
    r"|used|given|gone|lost|too|only|correct|incorrect|read|written|in|on|at|for|from|of|to|an?|the|that|what|this|there)"
)
_SECRETS = re.compile(
    r"-----BEGIN .*"
    rf"|(?i:{_BEGIN}[\w-]*{_NAMED}[\w-]*{_GIVEN})"
    rf"|(?i:{_BEGIN}[\w-]*{_SHORT}[\"']?\s*=+>?\s*{_VALUE})"
    # "Do the tests pass: yes or no?" is not one.
    rf"|(?i:(?:{_BEGIN}[\w-]*[_-]|(?<![A-Za-z]\s)\b){_SHORT}{_GIVEN})"
    rf"|(?i:{_BEGIN}--?(?:[\w-]*{_NAMED}[\w-]*|(?:[\w-]*-)?{_SHORT})\s+(?!-){_VALUE})"
    rf"|(?i:\b{_NAMED}\s+(?:is|was)\s+(?:(?:now|still|set|changed|to)\s+)*(?!{_STATES}\b){_VALUE})"
    rf"|{_BEGIN}(?:-[uU]|--(?:proxy-)?user)[\s=]*[\"']?[^\s:]+:{_VALUE}"
    r"|(?i:\bbearer\s+[\w.~+/=-]{6,})"
    # No word of a sentence: it has a digit, or small letters with a capital behind the first.
    r"|(?i:\bbasic\s+)(?=\S*(?:\d|=|[a-z]\S*[A-Z]|\S[A-Z]\S*[a-z]))[\w+/-]{6,}={0,2}"
    r"|\b(?:sk|pk|rk|hf|npm|tk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[a-z])[-_][\w-]{6,}"
    r"|\b(?:AKIA|ASIA|AIza|ya29\.|eyJ)[\w.-]{6,}"
    r"|(?<=://)(?:[^\s/@:]*:\S*@|[^/\s@]+@)"
)
_RUN = re.compile(r"[A-Za-z0-9+_=-]{20,}", re.ASCII)
_LONGEST_HEX = 32


def clean(value: object, longest: int) -> str:
    r"""Return the first line of a text, fit to leave the machine, of at most `longest` characters.

    >>> clean("Deploy?\nmore", 20), clean("a\x1b[31m", 20), clean("use token=hunter2 now", 40), clean(None, 9)
    ('Deploy?', 'a\\x1b[31m', 'use [left out] now', '')
    """
    return _cleaned(_beginning(value).partition("\n")[0].strip(), longest)


def clean_question(value: object, longest: int, *, is_permission: bool) -> str:
    r"""Return the same of a question: what it says, and not its Markdown; of a request for permission, as it stands.

    Marks go before secrets are looked for, which they could part from their names.

    >>> clean_question("## Deploy with **token**: hunter2?", 40, is_permission=False)
    'Deploy with [left out]'
    >>> clean_question(r"With ghp\_0123456789abcdef?", 40, is_permission=False)
    'With [left out]?'
    >>> clean_question("Allow Bash: rm *a* `b`?", 40, is_permission=True)
    'Allow Bash: rm *a* `b`?'
    """
    if is_permission:
        return clean(value, longest)
    words = first_line_in_words(_beginning(value))
    bare = words.replace("\\", "")  # Markdown's, in the middle of a key.
    return _cleaned(bare if without_secrets(bare) != bare else words, longest)


def _beginning(value: object) -> str:
    """Return as much of a text as is looked at, without the word that is cut: it would not be recognised any more."""
    text = value.lstrip() if isinstance(value, str) else ""
    if len(text) <= 2 * _LOOKED_AT:
        return text
    *before, _ = text[: 2 * _LOOKED_AT].rsplit(maxsplit=1)
    return before[0] if before else LEFT_OUT


def _cleaned(line: str, longest: int) -> str:
    if len(line) > _LOOKED_AT:
        line = line[:_LOOKED_AT].rpartition(" ")[0] or LEFT_OUT
    return shortened(plain(whole(without_secrets(line))), longest)


def without_secrets(text: str) -> str:
    """Return a short text in which whatever looks like a secret is replaced.

    >>> without_secrets("push to https://me:pw@host/x with ghp_0123456789abcdef")
    'push to https://[left out]host/x with [left out]'
    """
    return _RUN.sub(_unless_opaque, _SECRETS.sub(LEFT_OUT, text))


def _unless_opaque(found: re.Match[str]) -> str:
    """Return a long run of characters, or what replaces it if it has the look of a key: digits, both cases, or hex."""
    run = found[0]
    has_digit = any(map(str.isdigit, run))
    is_mixed = has_digit and run != run.lower() and run != run.upper()
    is_hex = has_digit and len(run) >= _LONGEST_HEX and all(one in "0123456789abcdefABCDEF-" for one in run)
    return LEFT_OUT if is_mixed or is_hex else run

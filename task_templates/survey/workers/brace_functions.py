"""Functions of a brace language: an estimate, from the text in front of each `{`.

Good enough to find what is long or deep; a macro or a very unusual layout may hide a function.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from code_text import without_comments_and_strings, without_other_branches
from measures import Measure

FAMILIES = {
    "JavaScript": "script", "TypeScript": "script", "Vue": "script", "Svelte": "script", "PHP": "php",
    "Go": "go", "Rust": "rust", "Dart": "dart", "C": "c", "C header": "c", "C++": "c", "C#": "c",
    "Objective-C": "c", "Java": "c", "Kotlin": "c", "Scala": "c", "Groovy": "c", "Swift": "c", "D": "c",
    "Zig": "c", "Solidity": "script", "Protocol Buffers": "c",
}  # fmt: skip
HEADER_LIMIT = 600
PREPROCESSED = {"C", "C header", "C++", "Objective-C", "C#"}
#: Here a name with parentheses before a `{` inside a function is a macro that loops, not a function.
NO_INNER_FUNCTIONS = {"C", "C header", "C++", "C#", "Objective-C", "Java", "Go", "Rust"}

_PARENTHESIS = re.compile(r"[()]")
_TOKEN = re.compile(r"[{}();]")
_CONTROL_WORDS = (
    "if|else|for|foreach|while|do|switch|case|default|try|catch|finally|match|loop|select|guard|when|unless|until"
    "|repeat|with|using|synchronized|lock|fixed|unsafe|defer|@autoreleasepool|@synchronized|@try|@catch|@finally"
)
#: At the start, after a label, or where a value is expected (`let x = match y {`).
_CONTROL = re.compile(rf"(?:^|^\w+\s*:|=>?|\breturn)\s*(?:await\s+)?(?:{_CONTROL_WORDS})(?![\w$])(?!\s*[:=](?!:))")
_TYPE = re.compile(
    r"(?:^|\s)(?:class|struct|interface|enum|namespace|impl|trait|extension|protocol|object|mod|module|record"
    r"|union|contract|library|message|service|mixin|actor|@interface|@implementation)(?=\s|$|<|\{)"
)
_NAMED = r"\s+(?:<[^<>]*>\s*)?([^\s(<\[{:=]+)"
_KEYWORDS = {
    "Go": re.compile(r"\bfunc\s*(?:\([^()]*\)\s*)?(?!map\b)(\w+)\s*[(\[]|\bfunc()\s*\("),
    "Rust": re.compile(rf"\bfn{_NAMED}"),
    "Zig": re.compile(rf"\bfn{_NAMED}"),
    "Swift": re.compile(rf"\bfunc{_NAMED}"),
    "Kotlin": re.compile(rf"\bfun{_NAMED}|\bfun()\s*\("),
    "Scala": re.compile(rf"\bdef{_NAMED}"),
    "Groovy": re.compile(rf"\bdef{_NAMED}\s*\("),
}
_RETURNS_TYPE = re.compile(r"\b(?:struct|union|enum)\b")
_ANNOTATIONS = re.compile(r"(?:@[\w.]+(?:\s*\([^()]*\))?\s*|\[[^\[\]]*\]\s*|__attribute__\s*\(\(.*?\)\)\s*)+")
_NO_NAMES = {"requires", "decltype", "alignas", "noexcept"}
_OPERATOR = re.compile(r"\boperator\s*[^\s\w(]+$")
_NOT_DECLARED = re.compile(r"(?<![<>=!])=(?!=)|\b(?:return|new|throw|await|yield|else)\b")
_SCRIPT_FUNCTION = re.compile(r"(?<![\w.$])function(?![\w$])\s*\*?\s*([\w$]*)")
_ASSIGNED = re.compile(r"([\w$.\]]+)\s*(?::[^=;]*)?[=:]\s*(?:async\s+)?(?:function\b|\(|[\w$]+\s*=>)")
_QUALIFIERS = re.compile(
    r"\s*(?:(?:(?:const|noexcept|override|final|volatile|mutable|async|throws|rethrows|returns|view|pure"
    r"|external|public)\b|&&?)[\w.,<>()\s]*|->[^=;]*|:[^;]*|where\b[^;]*|[\w<>\[\]*&?]*)\s*"
)
_BRANCH = re.compile(
    r"\b(?:if|for|foreach|while|case|catch|when|guard|elif|elseif|elsif)\b|&&|\|\|"
    r"|\?(?![?.:>,)\]])|=>\s*(?=[^\s{])"
)


@dataclass(kw_only=True, slots=True)
class Scope:
    kind: str
    "`function`, `block` (a level of nesting), `type` or `other`."
    name: str
    began_at: int
    outer_header: int
    outer_parentheses: int
    depth: int = 0
    deepest: int = 0


def measure(text: str, language: str) -> list[Measure]:
    bare = without_comments_and_strings(text, FAMILIES[language])
    if language in PREPROCESSED:
        bare = without_other_branches(bare)
    return _Scan(bare, language).measures()


class _Scan:
    """One pass over the braces; `header` is where the text before the next brace begins."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self.language = language
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.scopes: list[Scope] = []
        self.header = 0
        self.parentheses = 0
        self.found: list[Measure] = []

    def measures(self) -> list[Measure]:
        for match in _TOKEN.finditer(self.text):
            position = match.start()
            match match[0]:
                case "(":
                    self.parentheses += 1
                case ")":
                    self.parentheses = max(0, self.parentheses - 1)
                case ";" if not self.parentheses:  # those of `for (;;)` end no statement
                    self.header = position + 1
                case "{":
                    self._open(position)
                case "}" if self.scopes:
                    self._close(position)
        return sorted(self.found, key=lambda one: one.line)

    def _open(self, position: int) -> None:
        header = self.text[max(self.header, position - HEADER_LIMIT) : position]
        kind, name = classify(header, self.language, inside_function=self._function() is not None)
        began_at = position - len(header) + _beginning(header, name)
        self.scopes.append(
            Scope(
                kind=kind,
                name=name,
                began_at=began_at,
                outer_header=self.header,
                outer_parentheses=self.parentheses,
            )
        )
        self.header, self.parentheses = position + 1, 0
        function = self._function()
        if kind == "block" and function is not None:
            function.depth += 1
            function.deepest = max(function.deepest, function.depth)

    def _close(self, position: int) -> None:
        scope = self.scopes.pop()
        self.parentheses = scope.outer_parentheses
        # After a closing brace a statement begins, except inside parentheses: there it is an argument.
        self.header = scope.outer_header if self.parentheses else position + 1
        function = self._function()
        if scope.kind == "block" and function is not None:
            function.depth -= 1
        if scope.kind == "function":
            self.found.append(self._measured(scope, position))

    def _measured(self, scope: Scope, end: int) -> Measure:
        first = bisect_right(self.line_starts, scope.began_at)
        return Measure(
            name=scope.name,
            line=first,
            lines=bisect_right(self.line_starts, end) - first + 1,
            nesting=scope.deepest,
            branches=len(_BRANCH.findall(self.text, scope.began_at, end)),
            method="braces",
        )

    def _function(self) -> Scope | None:
        return next((scope for scope in reversed(self.scopes) if scope.kind == "function"), None)


def classify(header: str, language: str, *, inside_function: bool) -> tuple[str, str]:
    """What the brace after this text opens, and the function's name."""
    text = header.strip()
    if _CONTROL.search(text):
        return "block", ""
    anonymous = ("block" if inside_function else "other", "")
    head = text.partition("(")[0]
    if FAMILIES[language] in {"script", "php", "dart"} and text.endswith(("(", ",", "=", ":", "[")):
        return "other", ""  # an object: `f({`, `({a}, b = {`
    keyword = _keyword_name(text, language)
    if keyword is None and _TYPE.search(head) and not (text.endswith(")") and _RETURNS_TYPE.search(head)):
        return "type", ""
    if keyword is None and text.endswith("=>"):
        keyword = _assigned_name(text) if FAMILIES[language] == "script" else ""
    if keyword is not None:
        return ("function", keyword) if keyword else anonymous
    if text.endswith(("->", "|")):  # lambdas of Java and Rust
        return anonymous
    name = _declared_name(text)
    if name is None:
        return "other", ""
    return ("block", "") if inside_function and language in NO_INNER_FUNCTIONS else ("function", name)


def _keyword_name(text: str, language: str) -> str | None:
    """The name after `function`, `func`, ...; "" when it has none; None when there is no such word."""
    if FAMILIES[language] == "script" or language == "PHP":
        last = list(_SCRIPT_FUNCTION.finditer(text))
        return (last[-1][1] or _assigned_name(text)) if last else None
    match = _KEYWORDS[language].search(text) if language in _KEYWORDS else None
    return (match[1] or "") if match else None


def _assigned_name(text: str) -> str:
    names = _ASSIGNED.findall(text)
    return str(names[-1]).rstrip("]") if names else ""


def _declared_name(text: str) -> str | None:
    """The name of `type name(parameters) qualifiers`, which has no keyword."""
    if annotations := _ANNOTATIONS.match(text):
        text = text[annotations.end() :]
    opening = text.find("(")
    closing = _matching(text, opening)
    before = _OPERATOR.sub("operator", text[: max(opening, 0)].rstrip())
    name = re.search(r"([\w$~#]+)(?:\s*<[^<>]*>)?$", before)
    if closing is None or name is None or name[1] in _NO_NAMES or _NOT_DECLARED.search(before):
        return None
    return name[1].lstrip("#") if _QUALIFIERS.fullmatch(text, closing + 1) else None


def _beginning(header: str, name: str) -> int:
    """Where the function's own text begins: without semicolons other statements precede it."""
    if not name:
        return len(header) - len(header.lstrip())
    declared = re.search(rf"(?<![\w$]){re.escape(name)}(?=\s*[(<\[])", header)
    return declared.start() if declared else max(header.rfind(name), 0)


def _matching(text: str, opening: int) -> int | None:
    level = 0
    for match in _PARENTHESIS.finditer(text, max(opening, 0)):
        level += 1 if match[0] == "(" else -1
        if level == 0:
            return match.start()
    return None

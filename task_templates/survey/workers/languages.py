"""Which language a file is written in: by its name, its extension, or its `#!` line."""

from __future__ import annotations

import re

BY_NAME = {
    "Makefile": "Make", "GNUmakefile": "Make", "makefile": "Make", "Dockerfile": "Dockerfile",
    "Containerfile": "Dockerfile", "CMakeLists.txt": "CMake", "Rakefile": "Ruby", "Gemfile": "Ruby",
    "Vagrantfile": "Ruby", "Jenkinsfile": "Groovy", "BUILD": "Starlark", "WORKSPACE": "Starlark",
    "meson.build": "Meson", "go.mod": "Go module", "go.sum": "Go module",
}  # fmt: skip

_EXTENSIONS = {
    "Python": "py pyi pyw", "Cython": "pyx pxd", "JavaScript": "js mjs cjs jsx",
    "TypeScript": "ts tsx mts cts", "Vue": "vue", "Svelte": "svelte", "C": "c", "C header": "h",
    "C++": "cc cpp cxx c++ hpp hh hxx inl ipp", "C#": "cs", "Objective-C": "m mm", "Java": "java",
    "Kotlin": "kt kts", "Scala": "scala sc", "Groovy": "groovy gradle", "Go": "go", "Rust": "rs",
    "Swift": "swift", "Dart": "dart", "PHP": "php", "Ruby": "rb rake gemspec", "Perl": "pl pm t",
    "Lua": "lua", "Shell": "sh bash zsh ksh", "Fish": "fish", "PowerShell": "ps1 psm1", "Batch": "bat cmd",
    "R": "r R", "Julia": "jl", "Elixir": "ex exs", "Erlang": "erl hrl", "Haskell": "hs", "OCaml": "ml mli",
    "F#": "fs fsi fsx", "Clojure": "clj cljs cljc", "Lisp": "lisp el scm rkt", "Nim": "nim", "Zig": "zig",
    "Assembly": "s S asm", "Fortran": "f f90 f95 for", "SQL": "sql", "HTML": "html htm xhtml", "CSS": "css",
    "Sass": "scss sass", "Less": "less", "XML": "xml xsd xsl svg", "JSON": "json jsonl", "YAML": "yaml yml",
    "TOML": "toml", "INI": "ini cfg conf", "Markdown": "md markdown", "reStructuredText": "rst",
    "Plain text": "txt text", "TeX": "tex sty cls bib", "Protocol Buffers": "proto", "GraphQL": "graphql gql",
    "CMake": "cmake", "Make": "mk", "Terraform": "tf tfvars", "Nix": "nix", "Vim script": "vim", "Tcl": "tcl",
    "D": "d", "Pascal": "pas", "CSV": "csv tsv", "Jinja": "j2 jinja jinja2", "Solidity": "sol",
    "Visual Basic": "vb", "Awk": "awk",
}  # fmt: skip
BY_EXTENSION = {extension: language for language, many in _EXTENSIONS.items() for extension in many.split()}

BY_INTERPRETER = {
    "python": "Python", "pypy": "Python", "sh": "Shell", "bash": "Shell", "dash": "Shell", "ksh": "Shell",
    "zsh": "Shell", "node": "JavaScript", "nodejs": "JavaScript", "deno": "TypeScript", "bun": "TypeScript",
    "perl": "Perl", "ruby": "Ruby", "lua": "Lua", "php": "PHP", "awk": "Awk", "gawk": "Awk", "tclsh": "Tcl",
    "Rscript": "R", "fish": "Fish", "make": "Make", "pwsh": "PowerShell", "groovy": "Groovy",
    "julia": "Julia", "elixir": "Elixir", "escript": "Erlang",
}  # fmt: skip

#: Prose and data: counted, but neither code nor comments.
PROSE = {"Markdown", "reStructuredText", "Plain text", "TeX"}
OTHER = "other text"

_SHEBANG = re.compile(r"#!\s*(?:\S*/)?env\s+(?:-\S+\s+|\w+=\S*\s+)*(\S+)|#!\s*(\S+)")


def language_of(name: str, text: str = "") -> str:
    """The language's name, or "other text"."""
    if name in BY_NAME:
        return BY_NAME[name]
    stem, _, extension = name.rpartition(".")
    if stem and (language := BY_EXTENSION.get(extension) or BY_EXTENSION.get(extension.lower())):
        return language
    return _by_shebang(text) or OTHER


def _by_shebang(text: str) -> str | None:
    match = _SHEBANG.match(text)
    if match is None:
        return None
    program = (match[1] or match[2]).rpartition("/")[2]
    return BY_INTERPRETER.get(program) or BY_INTERPRETER.get(program.rstrip("0123456789."))

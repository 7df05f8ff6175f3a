"""How a terminal shows what agents say and do, and what programs print: Markdown, code, calls, rows of an output.

Nothing here draws: texts come out as lines of spans, each with its look, and whoever draws them has a style for each.
"""

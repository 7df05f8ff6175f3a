"""How what agents say and do is drawn at a terminal: Markdown, code, and calls as what they would do.

Nothing here draws: texts come out as lines of spans, each with its look, and whoever draws them has a style for each.
"""

"""What an agent did, row by row: the rows, how they fold into a tree, and what a person reads of them.

Doors: `row`, `rows`, `fold`, `view`, `transcript`.
"""

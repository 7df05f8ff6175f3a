"""What an agent did, row by row: the rows, the tree that they fold into, and the transcript that a person reads.

Doors: `row`, `rows`, `fold`, `view`, `transcript`, `seen`.
"""

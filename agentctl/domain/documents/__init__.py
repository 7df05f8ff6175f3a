"""The JSON documents that commands show, key by key: for type checkers, and for the schemas of all answers.

Nothing else loads them: `typing` would take 5 ms of a short command's time. Keys are only ever added.
"""

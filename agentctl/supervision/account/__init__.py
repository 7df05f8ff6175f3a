"""Which account an agent uses, whether it may be used now, and what a tree of tasks has used up.

Doors: `accounts`, `holds`, `waiters`, `ledger`.
"""

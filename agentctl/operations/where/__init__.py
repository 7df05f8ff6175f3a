"""Which task and which worker is meant, whose they are, who asks, and which limits hold there.

Doors: `locating`, `calling`, `ownership`, `lineage`, `task_limits`, `subtasks_below`, `observed`, `sandbox`,
`odd_files`, `findings`, `folding`.
"""

"""Which task and which worker a command means, whose they are, who calls, and which limits apply.

Doors: `locating`, `calling`, `ownership`, `lineage`, `task_config`, `personal_config`, `subtasks_below`, `observed`,
`sandbox`, `odd_files`, `findings`, `folding`, `command_lines`, `connecting`, `agents_above`, `shared_roots`,
`model_providers`, `moved`, `tries_in_log`, `chosen_task`, `removal_order`, `put_away`, `root_lock`, `names_in_log`.
"""

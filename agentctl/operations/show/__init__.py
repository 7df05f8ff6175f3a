"""Views of the current state: workers, tasks, trees, activities, results, usage. Starts nothing.

Doors: `current_state`, `live_workers`, `listing`, `one_worker`, `tasks`, `tree_view`, `activity_nodes`, `activity`,
`logs`, `results`, `result_files`, `whole_texts`, `subtask_answer`, `joining`, `usage`, `askers`, `why`, `evidence`,
`searching`, `timeline`, `text_pages`, `event_pages`, `late_exits`, `further_runs`, `queue_holds`,
`sessions_by_hand`, `unreadable`.
"""

"""Views of the current state: workers, tasks, trees, activities, results, usage. Starts nothing.

Doors: `listing`, `tasks`, `tree_view`, `activity`, `logs`, `results`, `whole_texts`, `subtask_answer`, `joining`,
`usage`, `askers`.
"""

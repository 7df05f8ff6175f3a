"""What several commands show: tables, JSON, ends and questions, and what a person is told beside them.

Doors: `bell`, `foreground`, `json_text`, `merged_rows`, `printed_step`, `question_lines`, `selection`, `tables`,
`told_ends`, `wait_notes`, `worktree_notes`.
"""

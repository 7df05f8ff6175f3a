"""What the files of one worker say, and how they are written: its spec, parents, questions, end.

Doors: `cancel_request`, `control`, `deferrable`, `deferred`, `driver_end`, `endings`, `engine_answers`, `environment`,
`failures`, `inboxes`, `kinship`, `mount_points`, `pause_request`, `placed`, `questions`, `relative_paths`, `spec`,
`whereabouts`, `worktimes`.
"""

"""What the files of one worker say; and what is kept for several of them.

Doors: `cancel_request`, `control`, `deferrable`, `deferred`, `driver_end`, `endings`, `engine_answers`, `environment`,
`failures`, `inboxes`, `kinship`, `mount_points`, `output_at_end`, `pause_request`, `placed`, `questions`,
`relative_paths`, `spec`, `whereabouts`, `worktimes`.
"""

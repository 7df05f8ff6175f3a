"""What the files of one worker say, and how they are written: its spec, parents, questions, end.

Doors: `environment`, `spec`, `kinship`, `endings`, `failures`, `driver_end`, `control`, `cancel_request`, `questions`,
`inboxes`, `worktimes`, `placed`, `engine_answers`, `whereabouts`.
"""

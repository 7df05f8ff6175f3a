"""Everything that a start decides: from a request to a worker in the queue, or one that runs.

Doors: `spawning`, `requests`, `batch`, `new_task`, `from_template`, `permissions`, `answer_schema`, `continuation`,
`requeuing`.
"""

"""Everything that a start decides: from a request to a worker in the queue, or one that runs.

`spawning.spawn_workers` has the steps in their order: what can be looked at before anything is made (`requests`,
`admission`), names and orders on disk (`worker_folder`, `agent_order`), what those show (`inherited`, `admission`), and
then the queue.

Doors: `spawning`, `ahead`, `requests`, `options`, `batch`, `new_task`, `from_template`, `permissions`, `answer_schema`,
`continuation`, `requeuing`.
"""

"""Everything that a start decides: from a request to a worker in the queue, or one that runs.

`spawning.spawn_workers` takes the steps in order: it checks what can be checked before anything is made (`requests`,
`admission`), puts names and orders on disk (`worker_folder`, `agent_order`), checks the orders (`inherited`,
`admission`), and goes to the queue.

Doors: `spawning`, `interruption`, `spare_shims`, `requests`, `options`, `batch`, `new_task`, `from_template`,
`permissions`, `continuation`, `obeyed`, `requeuing`, `again`, `placing`, `on_node`, `request_keys`, `task_keys`,
`key_records`.
"""

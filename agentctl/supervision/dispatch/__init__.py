"""Who starts next, in which place, and how its shim is started.

Doors: `dispatch`, `stop_order`, `slots`, `launching`, `handshake`, `succession`, `standby`, `standstill`, `waker`,
`taking_over`.
"""

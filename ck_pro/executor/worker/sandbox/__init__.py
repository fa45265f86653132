"""The sandbox of a worker: layers of isolation, and limits of memory, disk and processes.

May import: the standard library and each other.
`supervisor` and `zygote` use `Sandbox` and the watchdogs; the parent uses `kernel`.
"""

"""Chromium processes: found, started, restarted and measured.

May import: `network` and what stands above it.
`pool` uses `Engines`.
"""

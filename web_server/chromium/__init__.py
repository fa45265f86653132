"""Chromium processes: find, start, restart and measure them.

May import: `network` and what stands above it.
`pool` uses `Engines`.
"""

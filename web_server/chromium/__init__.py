"""Chromium processes: find, start, restart and measure them.

May import: `network` and the rooms above it.
`pool` uses `Engines`.
"""

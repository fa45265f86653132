"""What a person or a program sees of a run: display, summary, status file, metrics and log.

May import: `runner` and what stands above it.
`cli` uses it.
"""

"""MiniWoB++ as a conformance suite of the browser server: `python -m benchmarks.miniwob`.

A scripted policy for each task reads observations as text and acts by action strings, through
`WebEnv` and a real Chromium. `world` is what a policy gets, `pages` serves the tasks, `suite` runs
the episodes; the other modules contain the policies.
"""

"""Read runs for the viewer: sources, the list of runs, and one run's outline, steps and calls.

A journal and an output row give the same events, so one outline serves both. May import: the core,
and `ck_main.runner.task_folder`. Used by the modules of `ck_main.viewer`.
"""

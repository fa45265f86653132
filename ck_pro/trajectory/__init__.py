"""Export, compare, fork, compress and trace the journals and output rows of runs.

See `docs/trajectories.md`, and `python -m ck_pro.trajectory.export --help`.

Rooms, in import order; the commands beside them may import all:

    reading    rows and journals, one at a time, in bounded memory
    labels     decisions of people about runs, steps and calls, in their own file
    formats    one file per export format
    exporting  filters, pipeline, writers and report
    previewing what an export would train on, with token counts
    otel       OpenTelemetry spans
"""

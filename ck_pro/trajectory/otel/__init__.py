"""Runs as OpenTelemetry spans: the mapping, attribute names and OTLP JSON.

May import: `reading` and the core.
`ck_pro.trajectory.spans` and `telemetry` use it.
"""

"""The calls of a step: functions that run in the parent for the code in the worker.

May import: the worker's wire format and `executor.results`. `executor.core` and `executor.step` use
`StepCalls`.
"""

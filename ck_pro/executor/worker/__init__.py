"""The program that runs code: the zygote, the supervisors and the workers.

A bare interpreter imports this package from its path, under the name `_ck_worker`. So its files
import only the standard library and each other. The parent uses `wire`, `values`, `spin`,
`sandbox.kernel` and the format of `code.printing`.

Read it in this order: `zygote` forks a `supervisor`, which builds a `sandbox` for the worker in
`runtime`, which runs the model's `code`.
"""

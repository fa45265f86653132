"""The side of the executor that runs the code: a zygote, supervisors and workers.

A bare interpreter loads this package by its path, under the name `_ck_worker`; so everything here
imports the standard library and its own files only. `wire.py` is the one file both sides use.
"""

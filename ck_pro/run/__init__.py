"""One live run: functions for its code, model calls, code execution, history and resume.

May import every room of `ck_pro` except `agent`, `trajectory` and `testing`.
Other rooms use `Run`, `run_of`, `AgentResult`, `ActionResult` and `read_interrupted_run`.
"""

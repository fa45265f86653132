"""One live run: its functions for code, model calls, code execution, history and resume.

May import every room of `ck_pro` except `agent`, `trajectory` and `testing`.
Other rooms use `Run`, `AgentResult` and `ActionResult`.
"""

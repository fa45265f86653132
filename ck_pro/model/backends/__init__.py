"""Services that answer model calls, one module each, and the table that chooses one by its scheme.

May import: `ck_pro.model.types`, `retry`, `reasoning` and the rooms above `model`.
`LLM` uses `open_backend`; users subclass `Backend`.
"""

"""The seat of the model: a local page on which a person completes the prompts of all agents.

A process has one page and one queue of waiting calls, shared by all its `LLM` objects.
May import: `ck_pro.local_page`, `ck_pro.terminal`, and of `ck_pro.model` the rooms before `llm`.
Only the scheme `manual` uses it, by `backend.SeatBackend`.
"""

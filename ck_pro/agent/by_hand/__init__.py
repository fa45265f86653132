"""Replies by hand: what a person needs to be the model of an agent.

`reply_guide` describes the expected reply and composes it; `preview` is its dry run.
May import: what `ck_pro.agent` may, and its `actions` and `steps`. Only `agent.py` uses it.
"""

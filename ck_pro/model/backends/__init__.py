"""Back ends of `LLM`: clients of model services, and a person at the terminal.

`targets.py` has the table from the scheme of a `call_target` to its back end; each module in
`schemes` is one row. May import: `ck_pro.model.types`, `retry`, `shorten`, and rooms above `model`.
Others use `Backend`, `ChatRequest`, `FilteredReply`, `parse_target`, `check_target`, `open_target`.
"""

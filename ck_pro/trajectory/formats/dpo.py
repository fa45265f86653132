"""TRL, preferences: `prompt, chosen, rejected`; replies to one prompt in several tries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ck_pro.trajectory.formats.export_format import ExportFormat
from ck_pro.trajectory.formats.layout import Layout, TrainingRow
from ck_pro.trajectory.formats.trl import OF_REPLY, pair_metadata, trl_columns, trl_row
from ck_pro.trajectory.reading.model_calls import Call
from ck_pro.trajectory.reading.survey import Replies, kinds_of_pairs

_REPLIES = ("chosen", "rejected")


def dpo_rows(call: Call, layout: Layout) -> list[TrainingRow]:
    """Make a row for each pair of replies to the call's prompt."""
    assert layout.replies is not None
    prompt_metadata = {k: v for k, v in call.metadata.items() if k not in OF_REPLY}
    rows = []
    for good, bad in layout.replies.pairs(call, layout.max_pairs):
        chosen = layout.reply(good.reply, good.reasoning)
        rejected = layout.reply(bad.reply, bad.reasoning)
        parts = {"prompt": call.prompt, "chosen": [chosen], "rejected": [rejected]}
        row = trl_row(call, layout, parts)
        rewards = {"chosen_reward": good.value, "rejected_reward": bad.value}
        labels = {"chosen_label": good.label, "rejected_label": bad.label}
        rows.append({**row, "metadata": {**prompt_metadata, **rewards, **labels}})
    return rows


def dpo_columns(layout: Layout) -> dict[str, Any]:
    """Return the Parquet columns of `dpo_rows`."""
    return {**trl_columns(layout, ("prompt", *_REPLIES)), "metadata": pair_metadata()}


def _kinds_of_rows(call: Call, replies: Replies, max_pairs: int) -> Iterator[str]:
    return kinds_of_pairs(call, replies.pairs(call, max_pairs))


FORMAT = ExportFormat(
    name="dpo",
    help="TRL: prompt, chosen, rejected: replies to one prompt in several tries",
    trainer="TRL",
    row="`prompt, chosen, rejected`",
    images="as `sft`",
    call_rows=dpo_rows,
    parquet_columns=dpo_columns,
    kinds_of_rows=_kinds_of_rows,
    per_prompt=True,
    reply_columns=_REPLIES,
    advice="dpo needs tries of one task with equal prompts and different scores",
)

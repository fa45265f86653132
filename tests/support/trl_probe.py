"""Program: prepare an export for training as TRL's SFTTrainer does; print the result as JSON.

With torch and accelerate, a real trainer prepares it and trains a tiny model for one step. Without
them, it is the part that needs neither: the chat template of `trl.data_utils`.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from importlib.util import find_spec
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tokenizer() -> Any:
    """Return a tokenizer of bytes with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=letters[0])
    made.chat_template = TEMPLATE
    return made


def completions_of_trainer(rows: Any, processing: Any, folder: str) -> list[str]:
    """Train a tiny model for one step; return the tokens that the trainer trains on, as text."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig, SFTTrainer

    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(processing)}
    model = LlamaForCausalLM(LlamaConfig(**size, **heads, max_position_embeddings=65536))
    args = SFTConfig(
        output_dir=folder,
        report_to=[],
        use_cpu=True,
        bf16=False,
        max_length=None,
        max_steps=1,
        per_device_train_batch_size=1,
        disable_tqdm=True,
        save_strategy="no",
    )
    trainer = SFTTrainer(model, args, train_dataset=rows, processing_class=processing)
    with contextlib.redirect_stdout(sys.stderr):
        trainer.train()
    texts = []
    for row in trainer.train_dataset:
        texts.append(processing.decode([token for token in row["labels"] if token >= 0]))
    return texts


def completions_of_template(rows: Any, processing: Any) -> list[str]:
    """Return the completions after the chat template."""
    from trl.data_utils import is_conversational, maybe_apply_chat_template

    assert all(is_conversational(row) for row in rows)
    return [maybe_apply_chat_template(row, processing)["completion"] for row in rows]


def main() -> None:
    """Prepare the export named in the arguments."""
    import datasets

    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        rows = datasets.load_dataset(
            "json", data_files=sys.argv[1], split="train", cache_dir=folder
        )
        processing = tokenizer()
        whole = find_spec("torch") is not None and find_spec("accelerate") is not None
        if whole:
            completions = completions_of_trainer(rows, processing, folder)
        else:
            completions = completions_of_template(rows, processing)
        print(json.dumps({"rows": len(rows), "whole": whole, "completions": completions}))


if __name__ == "__main__":
    main()

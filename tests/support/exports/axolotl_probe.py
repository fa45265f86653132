"""Run by a test in a separate process: axolotl's chat_template strategy on an export.

    axolotl_probe.py FILE OUTPUT

The package's `__init__` files import PyTorch, which its strategy for chat templates does not need;
so its packages are put into `sys.modules` bare. The tokenizer is real: a word per character.
"""

import importlib.util
import json
import logging
import sys
from types import ModuleType
from unittest.mock import MagicMock

from bare_packages import bare_packages
from datasets import load_dataset
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

path, output = sys.argv[1:]
bare_packages("axolotl", "axolotl.utils", "axolotl.prompt_strategies")
log = ModuleType("axolotl.utils.logging")
log.get_logger = logging.getLogger  # type: ignore[attr-defined]
sys.modules[log.__name__] = log
if importlib.util.find_spec("torch") is None:
    sys.modules["torch"] = MagicMock()  # the settings refer to its dtypes

from axolotl.prompt_strategies.chat_template import (  # noqa: E402
    ChatTemplatePrompter,
    ChatTemplateStrategy,
)

if isinstance(sys.modules["torch"], MagicMock):
    del sys.modules["torch"]

TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for p in message.content %}"
    "{% if p.type == 'image' %}[image]{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}"
    "{% if message.tool_calls %}{% for c in message.tool_calls %}"
    "[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}{% endif %}</s>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
with open(path, encoding="utf-8") as file:
    characters = sorted(set(file.read()) | set(json.dumps("\x00")) | set("<>[]\n/ "))
words = {c: n for n, c in enumerate(["[UNK]", "</s>", *characters])}
made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
made.pre_tokenizer = pre_tokenizers.Split(Regex("</s>|[\\s\\S]"), "isolated")  # type: ignore
made.decoder = decoders.Fuse()  # type: ignore[assignment]
tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", eos_token="</s>")

strategy = ChatTemplateStrategy(
    ChatTemplatePrompter(
        tokenizer,
        chat_template=TEMPLATE,
        field_messages="messages",
        message_property_mappings={"role": "role", "content": "content"},
        message_field_training="training",
    ),
    tokenizer=tokenizer,
    train_on_inputs=False,
    sequence_len=10**6,
    roles_to_train=[],
    train_on_eos="turn",
)
rows = load_dataset("json", data_files=path, split="train", cache_dir=f"{output}.cache")
found = []
for row in rows:
    thread = strategy.get_conversation_thread(dict(row))
    tokens = strategy.tokenize_prompt(dict(row))
    trained = [
        i for i, label in zip(tokens["input_ids"], tokens["labels"], strict=True) if label != -100
    ]
    found.append(
        {
            "thread": [m["role"] for m in thread],
            "text": tokenizer.decode(tokens["input_ids"]),
            "trained": tokenizer.decode(trained),
        }
    )
with open(output, "w", encoding="utf-8") as file:
    json.dump(found, file)

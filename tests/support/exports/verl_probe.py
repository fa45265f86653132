"""Run by a test in a separate process: verl's SFT data set on an export.

    verl_probe.py FILE OUTPUT

What makes tensors needs PyTorch and a model's processor and is left out: the file is read, and each
row's messages are put together with its images, by `MultiTurnSFTDataset` itself.
"""

import io
import json
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pandas
from bare_packages import bare_packages
from PIL import Image

path, output = sys.argv[1:]
bare_packages("verl", "verl.utils", "verl.utils.dataset")
sys.modules["verl.utils"].hf_tokenizer = None  # type: ignore[attr-defined]
stubs = """torch torch.nn torch.nn.functional torch.utils torch.utils.data omegaconf transformers
verl.models.transformers.qwen2_vl verl.utils.dataset.dataset_utils verl.utils.fs
verl.utils.dataset.vision_utils verl.utils.metric verl.utils.tokenizer.chat_template"""
for name in stubs.split():
    sys.modules[name] = MagicMock()
sys.modules["torch.utils.data"].Dataset = object  # type: ignore[attr-defined]
sys.modules["omegaconf"].ListConfig = list  # type: ignore[attr-defined]
sys.modules["verl.utils.fs"].copy_local_path_from_hdfs = lambda p, **_: p  # type: ignore
tokenizers = sys.modules["verl.utils.tokenizer.chat_template"]
tokenizers.extract_system_prompt_and_generation = lambda *_, **__: ([], [])  # type: ignore


from verl.utils.dataset import multiturn_sft_dataset as verl  # noqa: E402

verl.process_image = lambda image, **_: Image.open(io.BytesIO(image["bytes"])).size
has_images = "images" in pandas.read_parquet(path).columns
vision = SimpleNamespace(image_processor=SimpleNamespace(patch_size=14)) if has_images else None
rows = verl.MultiTurnSFTDataset([path], None, {}, processor=vision)
found = []
for n in range(len(rows)):
    built = rows._build_messages(rows.dataframe.iloc[n].to_dict())
    found.append({"messages": rows.messages[n], "built": built})
with open(output, "w", encoding="utf-8") as file:
    json.dump(found, file)

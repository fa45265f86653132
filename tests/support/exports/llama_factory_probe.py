"""Run by a test in a separate process: LLaMA-Factory's parser and converter on an export.

The package's `__init__` files import PyTorch, which neither of the two modules needs; so its
packages are put into `sys.modules` bare, and the one thing they take of `peft` (names of files,
unused here) is stood in for.
"""

import json
import sys
from types import ModuleType, SimpleNamespace

from bare_packages import bare_packages

folder, name = sys.argv[1:]
bare_packages("llamafactory", "llamafactory.data", "llamafactory.extras")
peft = ModuleType("peft.utils")
peft.SAFETENSORS_WEIGHTS_NAME = peft.WEIGHTS_NAME = "unused"  # type: ignore[attr-defined]
sys.modules.update({"peft": ModuleType("peft"), "peft.utils": peft})
misc = ModuleType("llamafactory.extras.misc")
misc.use_modelscope = misc.use_openmind = lambda: False  # type: ignore[attr-defined]
sys.modules["llamafactory.extras.misc"] = misc

from datasets import load_dataset  # noqa: E402
from llamafactory.data.converter import get_dataset_converter  # noqa: E402
from llamafactory.data.parser import get_dataset_list  # noqa: E402

(attributes,) = get_dataset_list([name], folder)
path = f"{folder}/{attributes.dataset_name}"
rows = load_dataset("json", data_files=path, split="train", cache_dir=f"{folder}/cache")
convert = get_dataset_converter(
    attributes.formatting, attributes, SimpleNamespace(media_dir=folder)
)
print(json.dumps([convert(row) for row in rows]))

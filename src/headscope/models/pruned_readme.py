"""The README.md of a folder with a pruned model: which heads were removed, and how to load the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

README = "README.md"
_TITLE = "# A model without some of its attention heads"

_CUT = """{title}

`headscope` cut heads out of this model. Its matrices are smaller than `config.json` says, so that `AutoModel.from_pretrained` fails with
a size mismatch. `headscope prune --keep-shape` writes a folder with zeros instead, which any tool can load.

{heads}

With headscope, which keeps the smaller matrices:

    import headscope as hs
    model = hs.load(".", head=True)

With transformers alone, in this folder. The model then has its full size, and zeros where heads were cut out; it gives the same outputs:

```python
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, {network}

folder = Path(".")
weights = {{}}
for path in sorted(folder.glob("model*.safetensors")):
    weights.update(load_file(path))
dtype = next(iter(weights.values())).dtype
for name, cut in json.loads((folder / "pruned_heads.json").read_text())["tensors"].items():
    whole = torch.zeros(cut["shape"], dtype=dtype)
    if name in weights:
        pieces = torch.tensor(cut["kept"], dtype=torch.long)[:, None] * cut["width"] + torch.arange(cut["width"])
        whole.index_copy_(cut["axis"], pieces.flatten(), weights[name])
    weights[name] = whole
config = AutoConfig.from_pretrained(folder)
model = {network}.from_pretrained(None, config=config, state_dict=weights, dtype=dtype).eval()
```
"""

_ZEROED = """{title}

`headscope prune --keep-shape` wrote zeros for all weights of some heads, so that they contribute nothing. The model has its full size and
loads like any other, for example with `AutoModel.from_pretrained`.

{heads}

These heads still have attention maps, which mean nothing: their queries and keys are zeros.
"""


def readme(network: str, layers: Mapping[str, Mapping[str, Any]], keep_shape: bool) -> str:
    """The text for a model of the class `network`. `layers` has, for each layer that lost heads, its original number of
    heads and the heads that remain.
    """
    rows = ["| layer | heads | removed |", "|---|--:|---|"]
    for name, layer in layers.items():
        gone = sorted({*range(1, layer["heads"] + 1)} - {*layer["kept"]})
        rows.append(f"| {name} | {layer['heads']} | {_listed(gone)} |")
    return (_ZEROED if keep_shape else _CUT).format(title=_TITLE, heads="\n".join(rows), network=network)


def write_readme(place: Path, folder: Path, text: str) -> None:
    """Write the text into `place`, whose contents will be moved to `folder`, unless `folder` has a README.md that
    headscope did not write.
    """
    there = folder / README
    if not there.is_file() or there.read_text(encoding="utf-8", errors="replace").startswith(_TITLE):
        (place / README).write_text(text, encoding="utf-8")


def _listed(heads: Sequence[int]) -> str:
    return ", ".join(map(str, heads))

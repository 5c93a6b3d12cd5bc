"""The encoder's own files in the folder of a run: what `encoder.transformer.name` can name."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from safetensors.torch import save

from spandet.encoding.transformer import Pretrained
from spandet.formats.target import Target
from spandet.inference.weights import FILE


@dataclass(frozen=True)
class EncoderFiles:
    """Writes an encoder; each file is replaced as a whole, so that the folder is always usable."""

    pretrained: Pretrained

    def save_settings(self, folder: Path) -> None:
        """Configuration and tokenizer, which pretraining does not change."""
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder, prefix=".", suffix=".part") as name:
            self.pretrained.save_files(Path(name))
            for path in Path(name).iterdir():
                path.replace(folder / path.name)

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """The weights as they are now."""
        weights = self.pretrained.transformer.model.state_dict()
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
        with Target(str(Path(folder) / FILE)).binary() as out:
            out.write(save(tensors, metadata={"format": "pt"}))

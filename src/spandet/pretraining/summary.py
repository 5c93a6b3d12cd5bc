"""Summary of a finished pretraining run: report, card and run.json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spandet.pretraining.corpus import PieceCorpus
from spandet.pretraining.loop import EVALUATION
from spandet.pretraining.settings import PretrainingSettings
from spandet.rendering.svg import line_plot
from spandet.rendering.tables import Table, Tabular, duration
from spandet.training.checkpoint import RunState
from spandet.training.log import LOG
from spandet.training.summary import versions

_CARD = """\
---
library_name: transformers
tags:
- spandet
- fill-mask
---

# {title}

Pretrained further on the texts below, from `{encoder}`. A recipe names its folder:

```toml
[encoder.transformer]
name = "{folder}"
```

"""


@dataclass(frozen=True, kw_only=True)
class PretrainingSummary(Tabular):
    """A finished pretraining run."""

    encoder: str
    """Name of the encoder that the run started from."""
    weights: str
    """A digest of that encoder's weights."""
    folder: Path
    settings: PretrainingSettings
    state: RunState
    corpus: PieceCorpus

    @property
    def title(self) -> str:
        """Title of the report and of the card."""
        return f"An encoder from {self.encoder}, pretrained further"

    def tables(self) -> Iterable[Table]:
        """Scores on held-out text, texts, settings and versions."""
        yield Table(
            title="Held-out text",
            columns=("step", "loss", "perplexity", "accuracy", "time"),
            rows=tuple(
                (
                    f"{line['step']:,}",
                    f"{line['loss']:.4f}",
                    f"{math.exp(min(line['loss'], 99)):.2f}",
                    float(line["accuracy"]),
                    duration(line["seconds"]),
                )
                for line in self._logged(EVALUATION)
            ),
            note="Loss and accuracy of masked pieces in text that was not trained on.",
            plots=(self._loss_plot(),),
        )
        yield Table(
            title="Texts",
            columns=("file", "documents", "characters", "sha256 of the texts"),
            rows=tuple(
                (text.name, text.documents, text.characters, text.sha256)
                for text in self.corpus.facts.texts
            ),
        )
        yield Table(title="Run", columns=("", "value"), rows=tuple(self._facts().items()))
        settings = self.settings.model_dump(mode="json")
        yield Table(
            title="Settings",
            columns=("setting", "value"),
            rows=tuple((key, json.dumps(value)) for key, value in settings.items()),
        )
        yield Table(title="Versions", columns=("package", "version"), rows=(*versions().items(),))

    def _facts(self) -> dict[str, str]:
        return {
            "encoder": self.encoder,
            "sha256 of its weights": self.weights,
            "steps": f"{self.state.step:,}",
            "time": duration(self.state.seconds),
            "pieces of training text": f"{len(self.corpus.train.ids):,}",
            "pieces of held-out text": f"{len(self.corpus.held_out.ids):,}",
        }

    def _loss_plot(self) -> str:
        losses = {
            "training": [(s["step"], sum(s["losses"].values())) for s in self._logged("step")],
            "held-out": [(s["step"], s["loss"]) for s in self._logged(EVALUATION)],
        }
        return line_plot(losses, x_label="step", title="Loss by step")

    def to_card(self) -> str:
        """README.md of the encoder."""
        head = _CARD.format(title=self.title, encoder=self.encoder, folder=self.folder.name)
        return head + self.to_markdown().partition("\n\n")[2]

    def to_json(self) -> dict[str, Any]:
        """Plain values, complete enough to compare runs with."""
        return {
            "identity": self.state.identity,
            "encoder": self.encoder,
            "steps": self.state.step,
            "seconds": self.state.seconds,
            "pieces": {
                "train": len(self.corpus.train.ids),
                "held_out": len(self.corpus.held_out.ids),
            },
            "evaluations": self._logged(EVALUATION),
            "texts": [text.model_dump() for text in self.corpus.facts.texts],
            "versions": versions(),
        }

    def _logged(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / LOG).read_text(encoding="utf-8").splitlines()
        return [line for line in map(json.loads, lines) if line["kind"] == kind]

"""README.md of a training run: the model card, with the header that model hubs read."""

from __future__ import annotations

from collections.abc import Sequence

from spandet.rendering.tables import duration, markdown_table
from spandet.training.report import REPORT
from spandet.training.summary import Summary, versions

CARD = "README.md"

_HEADER = """\
---
library_name: spandet
pipeline_tag: token-classification
tags:
- named-entity-recognition
- nested-ner
---"""

_USE = """\
```python
import spandet

recognizer = spandet.Recognizer.from_pretrained(".")
document = recognizer("Some text.")
```"""


def model_card(summary: Summary) -> str:
    """The model card as Markdown."""
    detector = summary.recipe.to_values()["detector"]["name"]
    state = summary.state
    run = (
        f"{state.epoch} epochs, {state.step:,} steps in {duration(state.seconds)}; epoch "
        f"{state.best} was kept. Seed {summary.recipe.training.seed}, "
        f"{summary.parameters:,} parameters. [Report]({REPORT})."
    )
    parts = [
        _HEADER,
        f"# A {detector} model for {_listed(summary.labels)}",
        "Finds named entities, nested and overlapping ones included:",
        _USE,
        *_scores(summary),
        "## Training",
        *([f"Method: {summary.recipe.preset_line()}."] if summary.recipe.preset else []),
        run,
        *(f"Note: {warning}." for warning in summary.warnings),
        "Decoding: " + ", ".join(f"{key} {value}" for key, value in summary.decoding.items()) + ".",
        markdown_table(summary.data_table()),
        f"```toml\n{summary.recipe.to_toml()}```",
        "Versions: " + ", ".join(f"{name} {number}" for name, number in versions().items()) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(labels[:8])
    return f"{shown} and {len(labels) - 8} more labels" if len(labels) > 8 else shown


def _scores(summary: Summary) -> list[str]:
    table = summary.score_table()
    if table is None:
        return ["No dev data were given, so its quality was not measured."]
    tuned = " and the decoding thresholds" if summary.recipe.training.tune else ""
    how = (
        f"Exact spans and labels on the dev data, which also chose the epoch{tuned}: "
        "expect a little less on other data."
    )
    return ["## Scores", how, markdown_table(table)]

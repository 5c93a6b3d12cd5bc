"""`spandet ensemble`: tune the threshold of an ensemble on dev data, and write its folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from spandet.errors import UsageError
from spandet.evaluation import evaluate
from spandet.formats.locking import one_writer
from spandet.formats.target import Target
from spandet.inference.ensemble import Ensemble
from spandet.inference.ensemble_folder import write_references
from spandet.inference.model_names import CARD, ENSEMBLE
from spandet.inference.recognizer import Recognizer
from spandet.inference.tuning import tune
from spandet.rendering.tables import Table, Tabular, percent
from spandet.text import Document

_CARD = """# {name}

An ensemble of {members}: the scores of spans are the means of those of its members. The folder has
no weights of its own.

```python
import spandet

recognizer = spandet.Recognizer.from_pretrained("{name}")
```

{table}
"""


@dataclass(frozen=True, kw_only=True)
class MemberScore:
    """A member, and its own F1 on the dev data."""

    name: str
    fingerprint: str
    weight: float
    f1: float


@dataclass(frozen=True, kw_only=True)
class Score:
    """The quality of the ensemble on the dev data that its threshold was tuned on."""

    data: str
    f1: float
    precision: float
    recall: float


@dataclass(frozen=True, kw_only=True)
class EnsembleReport(Tabular):
    """The report of a tuned ensemble."""

    threshold: float
    scores: tuple[Score, ...]
    members: tuple[MemberScore, ...]

    @property
    def title(self) -> str:
        """Number of members, threshold and F1."""
        (score,) = self.scores
        return (
            f"Ensemble of {len(self.members)} models: F1 {percent(score.f1)} on {score.data}, "
            f"threshold {self.threshold:.4f}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def tables(self) -> Iterator[Table]:
        """F1 of the members and of the ensemble."""
        (score,) = self.scores
        members = ((one.name, f"{one.weight:g}", one.f1) for one in self.members)
        yield Table(
            title=f"F1 on {score.data}, on which the threshold of the ensemble was tuned",
            columns=("model", "weight", "F1"),
            rows=(*members, ("ensemble", "", score.f1)),
        )


def tune_ensemble(
    models: Sequence[str | PathLike[str]],
    dev: Iterable[Document],
    out: Path,
    *,
    data: str = "dev",
    device: str | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> EnsembleReport:
    """Combine models, tune one threshold on dev data, and write a folder that names the models.

    Args:
        models: Two or more models; one that is named twice has twice the weight.
        dev: Labelled documents.
        out: A new or empty folder.
        data: Name of the dev data in the report.
        device: Device to compute on.
        notify: Is called with each step, for the user.

    Raises:
        UsageError: the models cannot be combined, or the data are not labelled.
    """
    documents = list(dev)
    if not any(document.entities for document in documents):
        raise UsageError(f"the data {data} have no entities, so no threshold can be tuned on them")
    with one_writer(out), Target(str(out)).folder() as draft:
        ensemble = Recognizer.from_pretrained(models, device=device)
        if not isinstance(ensemble, Ensemble):
            raise UsageError("an ensemble needs at least two different models, got one")
        report = _tuned(ensemble, documents, data, notify)
        records = [member.record for member in ensemble.members]
        write_references(draft, records, ensemble.labels, ensemble.decoding, place=out)
        _write_reports(report, draft, out.resolve().name)
    return report


def _tuned(
    ensemble: Ensemble, documents: Sequence[Document], data: str, notify: Callable[[str], None]
) -> EnsembleReport:
    """Tune the ensemble, and measure it and its members."""
    members = []
    for member in ensemble.members:
        f1 = evaluate(gold=documents, predicted=member.recognizer.predict(documents)).micro.f1
        notify(f"{member.name}: F1 {percent(f1)}")
        record = member.record
        members.append(
            MemberScore(
                name=member.name, fingerprint=record.fingerprint, weight=record.weight, f1=f1
            )
        )
    ensemble.decoding = tune(ensemble, documents)
    micro = evaluate(gold=documents, predicted=ensemble.predict(documents)).micro
    score = Score(data=data, f1=micro.f1, precision=micro.precision, recall=micro.recall)
    return EnsembleReport(
        threshold=ensemble.decoding.threshold, scores=(score,), members=tuple(members)
    )


def _write_reports(report: EnsembleReport, folder: Path, name: str) -> None:
    """Write ensemble.json and the card."""
    text = json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
    (folder / ENSEMBLE).write_text(text, encoding="utf-8")
    members = ", ".join(f"`{member.name}`" for member in report.members)
    card = _CARD.format(name=name, members=members, table=report.to_markdown())
    (folder / CARD).write_text(card, encoding="utf-8")

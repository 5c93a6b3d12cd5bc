"""Ensembles: several models as one, whose span scores are the means of those of its members."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Never

import numpy as np
import torch
from torch import nn

from spandet.encoding import Example
from spandet.encoding.examples import ContextSizes
from spandet.errors import UsageError
from spandet.inference.batching import batches
from spandet.inference.candidates import Candidates
from spandet.inference.decoding import DecodingSettings
from spandet.inference.engine import TorchEngine
from spandet.inference.ensemble_folder import MemberRecord, write_copies
from spandet.inference.ensemble_mean import Vote, mean_candidates
from spandet.inference.long_sentences import SentenceWindow, sentence_windows
from spandet.inference.recognizer import Recognizer
from spandet.text import Document

_OF_MEMBERS: dict[str, Any] = {"min_odds": 0.0, "merge": "max", "merge_by": "score"}
"""Settings of decoding that each member applies for itself, and their values in an ensemble."""
_SHARED = ("nms_decay", "nms_overlap", "nms_rule", "one_label", "crossing", "flat")
"""Settings of decoding that an ensemble takes from its members, if they agree."""


@dataclass(frozen=True, slots=True)
class Member:
    """A model of an ensemble."""

    recognizer: Recognizer
    record: MemberRecord

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.record.name


@dataclass(frozen=True, slots=True)
class EnsembleExample(Example):
    """A sentence as each member reads it: with its own context, tags and sub-word pieces."""

    own: tuple[Example, ...] = field(default=(), compare=False, repr=False, kw_only=True)
    """One example for each member."""

    @classmethod
    def of(cls, own: Sequence[Example]) -> EnsembleExample:
        """The examples of all members for one sentence."""
        return cls(own[0].words, own=tuple(own))


class Ensemble(Recognizer):
    """Several models as one recognizer. A score is the weighted mean of the members' scores.

    A member that does not propose a span, or does not know a label, has the score 0 for it. Each
    member merges its duplicates by its own settings; then there is one decoding of the means.
    Members are ordered by fingerprint, so that sums do not depend on the order of their names.
    """

    has_stages = False

    def __init__(self, members: Iterable[Member], decoding: DecodingSettings | None = None) -> None:
        """Combine models.

        Args:
            members: The models; those with equal fingerprints are one, with the sum of their
                weights.
            decoding: Settings of decoding; by default `shared_decoding` of the members.

        Raises:
            UsageError: the models cannot be combined.
        """
        self.members = _distinct(members)
        _check(self.members)
        self.labels = _all_labels(self.members)
        self.decoding = shared_decoding(self.members) if decoding is None else decoding
        exports = (member.recognizer.exported for member in self.members)
        self.exported = next((export for export in exports if export is not None), None)
        self.seed = 0

    def __getattr__(self, name: str) -> Any:
        """Refuse the parts of a single model: an ensemble has several of each."""
        if name in ("encoder", "detector", "settings"):
            self._refuse()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _refuse(self) -> Never:
        names = ", ".join(member.name for member in self.members)
        raise UsageError(f"expected a single model, got an ensemble of {names}")

    def modules(self) -> nn.ModuleDict:
        """Raises a UsageError: an ensemble has several models."""
        self._refuse()

    @property
    def engine(self) -> EnsembleEngine:
        """What computes candidates: the engines of all members."""
        return EnsembleEngine(self.members, self.labels, self.decoding, self.seed)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.members[0].recognizer.device

    @property
    def detector_name(self) -> str:
        """The names of the members' detectors."""
        return _joined(member.recognizer.detector_name for member in self.members)

    @property
    def encoder_name(self) -> str:
        """The names of the members' encoders."""
        return _joined(member.recognizer.encoder_name for member in self.members)

    def sentences(self, documents: Iterable[Document]) -> list[SentenceWindow]:
        """The sentences of documents as each member reads them, long ones in windows."""
        corpus = list(documents)
        rows = [
            sentence_windows(
                one.tagged([example for d in corpus for example in one.examples_of(d)]),
                self.long_sentences,
                one.encoder.context_words,
            )
            for one in (member.recognizer for member in self.members)
        ]
        return [
            replace(windows[0], example=EnsembleExample.of([window.example for window in windows]))
            for windows in zip(*rows, strict=True)
        ]

    @property
    def context_sizes(self) -> ContextSizes:
        """Context that is enough for every member."""
        return enough_context([member.recognizer.context_sizes for member in self.members])

    def save_pretrained(self, folder: str | PathLike[str]) -> None:
        """Write a folder with copies of all members. An existing model in it is replaced."""
        members = [(member.recognizer, member.record) for member in self.members]
        write_copies(Path(folder), members, self.labels, self.decoding)


class EnsembleEngine(TorchEngine):
    """The engines of the members; gives one candidate per span with the means of label scores."""

    def __init__(
        self,
        members: Sequence[Member],
        labels: Sequence[str],
        decoding: DecodingSettings,
        seed: int = 0,
    ) -> None:
        """Take the engines of members with their present weights.

        Args:
            members: The models, in the order of summation.
            labels: All labels.
            decoding: Settings of the ensemble. With `one_label = false`, there is one candidate per
                span and label.
            seed: Of the random generators.
        """
        total = sum(member.record.weight for member in members)
        self._shares = [member.record.weight / total for member in members]
        models = [member.recognizer for member in members]
        self._engines = [
            TorchEngine(one.encoder, one.detector, device=one.device, seed=seed) for one in models
        ]
        self._one_label = decoding.one_label
        rule = {"one_label": decoding.one_label}
        self._decodings = [one.decoding.model_copy(update=rule) for one in models]
        self._labels = len(labels)
        self._label_ids = [
            np.array([0, *(1 + labels.index(label) for label in one.labels)]) for one in models
        ]

    def prepare(self, examples: Sequence[Example]) -> Sequence[Example]:
        """The examples with the sub-word pieces of each member."""
        pairs = zip(self._engines, self._by_member(examples), strict=True)
        prepared = [engine.prepare(own) for engine, own in pairs]
        return [EnsembleExample.of(own) for own in zip(*prepared, strict=True)]

    def batches(self, examples: Sequence[Example], pieces: int) -> Iterable[tuple[int, ...]]:
        """The numbers of prepared examples in batches of up to so many pieces of any member."""
        by_member = self._by_member(examples)
        encoders = [engine.encoder for engine in self._engines]
        sizes = [encoder.sizes(own) for encoder, own in zip(encoders, by_member, strict=True)]
        # The longest passages stay in one batch.
        longest = max(range(len(encoders)), key=lambda number: encoders[number].passage_words)
        runs = encoders[longest].together(by_member[longest])
        largest = [max(own) for own in zip(*sizes, strict=True)]
        return batches(runs, largest, [len(example.words) for example in examples], pieces)

    def candidates(self, examples: Sequence[Example]) -> Candidates:
        """The spans that any member proposes for one batch, with the means of its label scores."""
        rows = zip(
            self._engines,
            self._by_member(examples),
            self._decodings,
            self._label_ids,
            self._shares,
            strict=True,
        )
        votes = [
            Vote(engine.candidates(own), decoding, label_ids, share)
            for engine, own, decoding, label_ids, share in rows
        ]
        return mean_candidates(votes, len(examples), labels=self._labels, one_label=self._one_label)

    def _by_member(self, examples: Sequence[Example]) -> list[list[Example]]:
        own = [example.own for example in examples if isinstance(example, EnsembleExample)]
        return [[one[number] for one in own] for number in range(len(self._engines))]


def shared_decoding(members: Sequence[Member]) -> DecodingSettings:
    """The settings that all members share, defaults for others, and the mean of the thresholds."""
    own = [member.recognizer.decoding for member in members]
    shared = {
        name: getattr(own[0], name)
        for name in _SHARED
        if all(getattr(one, name) == getattr(own[0], name) for one in own)
    }
    weights = [member.record.weight for member in members]
    mean = float(np.average([one.threshold for one in own], weights=weights))
    # The mean of equal numbers may be rounded.
    threshold = own[0].threshold if len({one.threshold for one in own}) == 1 else mean
    return DecodingSettings(threshold=threshold, **shared, **_OF_MEMBERS)


def enough_context(sizes: Sequence[ContextSizes]) -> ContextSizes:
    """Context of a part of a text that is enough for models with different sizes of context."""
    if all(own == sizes[0] for own in sizes):
        return sizes[0]
    words = max(own["context_words"] for own in sizes)
    neighbours = max(own["neighbour_sentences"] for own in sizes)
    passages = {own["passage_words"] for own in sizes} - {0}
    return ContextSizes(
        context_words=words,
        # Passages of different sizes have no common borders: a text is one passage.
        passage_words=sys.maxsize if len(passages) > 1 else max(passages, default=0),
        # A sentence of context has at least one word.
        neighbour_sentences=max(neighbours, words) if neighbours else 0,
    )


def _distinct(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members by fingerprint; of equal ones the first, with the sum of their weights."""
    found: dict[str, Member] = {}
    for member in members:
        record = member.record
        known = found.get(record.fingerprint)
        if known is not None:
            record = replace(known.record, weight=known.record.weight + record.weight)
            member = Member(known.recognizer, record)  # noqa: PLW2901
        found[record.fingerprint] = member
    return tuple(found[key] for key in sorted(found))


def _check(members: Sequence[Member]) -> None:
    for member in members:
        if isinstance(member.recognizer, Ensemble):
            raise UsageError(f"{member.name} is an ensemble itself; name its members instead")
    links = {member.recognizer.detector.links_fragments: member.name for member in members}
    if len(links) > 1:
        raise UsageError(
            f"{links[True]} finds discontinuous entities and {links[False]} does not; expected "
            f"members that all have the same `detector.fragments`"
        )


def _all_labels(members: Sequence[Member]) -> tuple[str, ...]:
    """The labels of all members in alphabetical order.

    Raises:
        UsageError: two members have no label in common.
    """
    first = members[0]
    for member in members[1:]:
        if not set(member.recognizer.labels) & set(first.recognizer.labels):
            raise UsageError(
                f"{first.name} and {member.name} have no label in common: "
                f"{', '.join(first.recognizer.labels)} and {', '.join(member.recognizer.labels)}"
            )
    return tuple(sorted({label for member in members for label in member.recognizer.labels}))


def _joined(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))

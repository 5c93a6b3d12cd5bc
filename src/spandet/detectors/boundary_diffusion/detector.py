"""Boundary diffusion: entities denoised out of random or proposed spans (Shen et al., ACL 2023).

Training: entities → slots → noise → denoiser → boundaries and labels. Prediction: noise or
proposals → denoiser, again and again at falling noise levels → boundaries and labels. Numbers of
equations and sections are the paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from spandet.detectors.base import Detector
from spandet.detectors.boundary_diffusion.boundary_pointers import Pointers
from spandet.detectors.boundary_diffusion.denoiser import Denoised, Denoiser, ReadWords
from spandet.detectors.boundary_diffusion.diffusion import low_discrepancy, sampling_times
from spandet.detectors.boundary_diffusion.fragment_linker import FragmentLinker
from spandet.detectors.boundary_diffusion.noise_space import NoiseSpace
from spandet.detectors.boundary_diffusion.settings import BoundaryDiffusionSettings
from spandet.detectors.boundary_diffusion.slot_losses import (
    boundary_loss,
    chosen_probs,
    slot_labels,
    with_pointers,
)
from spandet.detectors.boundary_diffusion.slot_matching import match_slots, overlapped, slot_costs
from spandet.layers.label_losses import label_loss, span_labels
from spandet.layers.span_head import SpanHead
from spandet.layers.span_scorer import ProposalScores, SpanScorer
from spandet.layers.span_view import SpanView
from spandet.spans.flat import FlatSpans, distinct, from_rows
from spandet.spans.slots import KeyedNoise, Slots, draw_slots, slot_counts, slot_mask
from spandet.tensors import GoldSpans, Loss, Losses, SpanPredictions, Stage, WordFeatures, to_device

_PROPOSAL_DIM = 128
_NOWHERE = -1


@dataclass(frozen=True)
class _Walk:
    """Where the slots are on their way from noise to entities."""

    latents: Float[Tensor, "batch span 2"]
    spans: Int[Tensor, "batch span 2"]
    """What they point at; nowhere before the first step, unless they start from proposals."""
    slots: Float[Tensor, "batch span dim"]
    probs: Float[Tensor, "batch span 2"]
    """How sure the pointers are."""
    moving: Bool[Tensor, "batch span"]


class BoundaryDiffusion(Detector):
    """Denoises (section 4.1) with a decoder that reads the words only once (section 4.2)."""

    def __init__(
        self, settings: BoundaryDiffusionSettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        del sentence_dim  # of no use here
        self.settings = settings
        shape, dropout = settings.shape(dim), settings.dropout
        self.space = NoiseSpace(
            settings.schedule,
            settings.levels,
            scale=settings.scale,
            state=settings.state,
            spread=settings.spread,
            divisor=settings.divisor,
        )
        self.denoiser = Denoiser(shape, words_dim=dim)
        self.slot_head = self.span_head = self.scorer = None
        if settings.label_view == "slot":  # the entity classifier of section 4.2
            self.slot_head = nn.Sequential(
                nn.Linear(shape.dim, shape.dim), nn.GELU(), nn.Linear(shape.dim, labels)
            )
        else:
            self.span_head = SpanHead(dim=dim, out=labels, dropout=dropout)
        if settings.proposes:
            self.scorer = SpanScorer(dim=dim, inner=_PROPOSAL_DIM, dropout=dropout)
        # Last, so that the others start with the same weights, whether there is one or not.
        self.linker = FragmentLinker(dim=dim, dropout=dropout) if settings.fragments else None

    @property
    def links_fragments(self) -> bool:
        """Is there a linker?"""
        return self.linker is not None

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Train on several noise levels of each sentence (algorithm 1)."""
        settings, words = self.settings, words.with_padding()
        losses: dict[str, Loss] = {}
        slots = self._slots(words, gold, rngs)
        proposed = None
        if self.scorer is not None:
            scores: ProposalScores = self.scorer(words)
            losses["proposal"] = scores.loss(gold).weighted(settings.proposal_weight)
            proposed, _ = scores.best(slots.mask.shape[1])
        spans = self._corrupted(words, gold, slots, proposed)
        mask = slots.mask.repeat(1, settings.draws)
        layers = self.denoiser(
            self.denoiser.read(words), spans, slots.levels, mask, every_layer=settings.auxiliary
        )
        targets = self._targets(words, gold, slots, spans, layers[-1])
        boundary = boundary_loss(
            [layer.pointers for layer in layers],
            targets,
            gold,
            settings.pointer_loss,
            slots=mask.sum() if settings.boundary_mean == "slots" else None,
        )
        losses["boundary"] = boundary.weighted(settings.boundary_weight)
        if self.slot_head is not None:
            label = self._slot_label_loss(layers, targets, mask, gold)
        else:
            shown = [from_rows(*self._pointed(layer.pointers, mask)) for layer in layers]
            shown.append(from_rows(gold.spans, gold.mask))
            if proposed is not None:
                shown.append(from_rows(proposed, slots.mask))
            label = self._span_label_loss(words, distinct(shown), gold)
        losses["label"] = label.weighted(settings.label_weight)
        if self.linker is not None:
            for name, loss in self.linker.losses(words, gold).items():
                losses[name] = loss.weighted(settings.link_weight)
        return losses

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Denoise (algorithm 2). The words are read once, however many steps there are."""
        del keep_all  # every slot is carried to the end
        words, settings = words.with_padding(), self.settings
        read = self.denoiser.read(words)
        fixed = settings.eval_slots or settings.slots
        counts = self._counts(words, fixed, settings.eval_slots_factor)
        noise, real = KeyedNoise(rngs), slot_mask(counts).to(words.mask.device)
        walk, stage = self._started(words, real, noise.at(0, counts).to(real.device))
        trace, times = [stage], sampling_times(settings.first_level, settings.steps)
        for step, levels in enumerate(pairwise(times), start=1):
            walk = self._step(walk, read, levels[0])
            sure = walk.probs.mean(dim=-1)
            trace.append(Stage(f"level {levels[0]}", walk.spans.float(), sure))
            if levels[1] >= 0:
                fresh = noise.at(step, counts).to(real.device) if settings.eta else None
                walk = self._renoised(walk, words, levels, fresh)
        legal = real & (walk.spans[..., 0] < walk.spans[..., 1])
        # One that is turned inside out is empty, where it begins.
        spans = torch.where(legal[..., None], walk.spans, walk.spans[..., :1].clamp(min=0))
        probs = self._label_logits(words, walk.slots, spans).softmax(dim=-1)
        types = None
        if settings.score == "sum":
            types = probs[..., 1:].max(dim=-1).values
            probs = with_pointers(probs, walk.probs)
        trace[-1] = replace(trace[-1], label_probs=probs)
        links = None if self.linker is None else self.linker(words, spans).links()
        return SpanPredictions(spans, probs, legal, tuple(trace), links, types)

    def _counts(self, words: WordFeatures, fixed: int | None, factor: float = 1.0) -> list[int]:
        """Slots of each sentence, `factor` times as many as in training."""
        per_word, extra = self.settings.slots_per_word, self.settings.slots_extra
        some = fixed and max(1, round(factor * fixed))
        return slot_counts(words.lengths, some, factor * per_word, round(factor * extra))

    def _slots(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Slots:
        settings = self.settings
        slots = draw_slots(
            rngs,
            self._counts(words, settings.slots),
            gold.counts.tolist(),
            draws=settings.draws,
            copies=None if settings.expansion == "repeat" else settings.copies,
            levels=settings.levels,
        )
        return to_device(slots, words.mask.device)

    def _corrupted(
        self,
        words: WordFeatures,
        gold: GoldSpans,
        slots: Slots,
        proposed: Int[Tensor, "batch span 2"] | None,
    ) -> Int[Tensor, "batch all 2"]:
        """Boundary forward diffusion (eq. 4): slots of entities or others (section 4.1), noised."""
        expansion, lengths = self.settings.expansion, words.lengths[:, None, None]
        rows = torch.arange(len(lengths), device=lengths.device)[:, None, None]
        if proposed is not None and expansion == "proposals":
            clean = self.space.latents(proposed[rows, slots.fill.clamp(min=0)], lengths)
        elif expansion == "repeat":  # nothing to repeat: the whole sentence
            whole = torch.stack([torch.zeros_like(lengths), lengths], dim=-1)
            clean = self.space.latents(whole, lengths)
        else:
            clean = self.space.from_unit(slots.random)
        if gold.spans.shape[1]:
            copied = self.space.latents(gold.spans[rows, slots.origin.clamp(min=0)], lengths)
            clean = torch.where((slots.origin >= 0)[..., None], copied, clean)
        levels = slots.levels[..., None]
        noisy = self.space.noised(clean, slots.noise, levels)
        return self.space.spans(noisy, lengths, levels).flatten(1, 2)

    def _targets(
        self,
        words: WordFeatures,
        gold: GoldSpans,
        slots: Slots,
        spans: Int[Tensor, "batch all 2"],
        layer: Denoised,
    ) -> Int[Tensor, "batch all"]:
        """The entity that each slot has to find; -1 for none."""
        settings = self.settings
        light = slots.levels < settings.known_origin * settings.levels
        known = (slots.origin >= 0) & light[..., None]
        free = slots.mask[:, None] & ~known
        if settings.assignment == "overlap":
            found = overlapped(spans, free.flatten(1), gold)
        else:
            found = self._matched(words, gold, layer, free)
        return torch.where(known.flatten(1), slots.origin.flatten(1), found)

    def _matched(
        self,
        words: WordFeatures,
        gold: GoldSpans,
        layer: Denoised,
        free: Bool[Tensor, "batch draw span"],
    ) -> Int[Tensor, "batch all"]:
        """π̂ of appendix A; every draw of a sentence is matched by itself."""
        settings = self.settings
        with torch.no_grad():
            first, last = layer.pointers.probs(exclusive=settings.pointer_loss == "nll")
            spans, legal = self._pointed(layer.pointers, free.flatten(1))
            spans = torch.where(legal[..., None], spans, spans.new_tensor([0, 1]))
            labels = self._label_logits(words, layer.slots, spans).softmax(dim=-1)
            costs = slot_costs(first, last, labels, gold)
        many = settings.targets_per_entity
        found = match_slots(
            costs.unflatten(1, free.shape[1:]).flatten(0, 1),
            free.flatten(0, 1),
            gold.mask.repeat_interleave(settings.draws, dim=0),
            per_entity=None if many == "all" else many,
        )
        return found.view(len(free), -1)

    def _slot_label_loss(
        self, layers: Sequence[Denoised], targets: Tensor, mask: Tensor, gold: GoldSpans
    ) -> Loss:
        """Slots are named after the entities that they have to find."""
        assert self.slot_head is not None  # noqa: S101 (asked only where there is one)
        logits = [self.slot_head(layer.slots[mask]) for layer in layers]
        sentence = mask.nonzero(as_tuple=True)[0]
        labels = slot_labels(targets, gold)[mask]
        return label_loss(logits, labels, sentence, self.settings.nil_weight)

    def _span_label_loss(self, words: WordFeatures, spans: FlatSpans, gold: GoldSpans) -> Loss:
        """Spans are named after the entities that they are."""
        assert self.span_head is not None  # noqa: S101 (asked only where there is one)
        logits = SpanView(words).inner(self.span_head, spans)
        labels = span_labels(spans, gold)
        return label_loss([logits], labels, spans.sentence, self.settings.nil_weight)

    def _label_logits(
        self,
        words: WordFeatures,
        slots: Float[Tensor, "batch span dim"],
        spans: Int[Tensor, "batch span 2"],
    ) -> Float[Tensor, "batch span label"]:
        """What slots (P^c of section 4.2), or the spans that they point at, are taken for."""
        if self.slot_head is not None:
            of_slots: Tensor = self.slot_head(slots)
            return of_slots
        assert self.span_head is not None  # noqa: S101 (one of the two)
        logits = SpanView(words).inner(self.span_head, from_rows(spans))
        return logits.view(*spans.shape[:2], -1)

    def _pointed(
        self, pointers: Pointers, mask: Bool[Tensor, "batch span"]
    ) -> tuple[Int[Tensor, "batch span 2"], Bool[Tensor, "batch span"]]:
        """The spans that slots point at, and which of them are real."""
        spans = pointers.ordered() if self.settings.pair == "ordered" else pointers.independent()
        return spans, mask & (spans[..., 0] < spans[..., 1])

    def _started(
        self,
        words: WordFeatures,
        real: Bool[Tensor, "batch span"],
        noise: Float[Tensor, "batch span 2"],
    ) -> tuple[_Walk, Stage]:
        """Where the slots begin: at noise, or at proposals on the way down."""
        lengths, scores, name = words.lengths[:, None], None, "noise"
        level = self.settings.first_level
        spans = torch.full((*real.shape, 2), _NOWHERE, device=real.device)
        if self.settings.start == "proposals":
            assert self.scorer is not None  # noqa: S101 (somebody has to propose)
            spans, scores = self.scorer(words).best(real.shape[1])
            clean, name = self.space.latents(spans, lengths), "proposal"
            latents = self.space.noised(clean, self.settings.start_noise * noise, level)
        elif self.settings.start == "low-discrepancy":
            latents = low_discrepancy(real.shape[1]).to(noise).expand_as(noise)
        else:
            latents = noise
        slots = words.features.new_zeros(*real.shape, self.denoiser.shape.dim)
        seen = self.space.spans(latents, lengths, level).float()
        probs = slots.new_zeros(latents.shape, dtype=torch.promote_types(slots.dtype, noise.dtype))
        walk = _Walk(latents, spans, slots, probs, real)
        return walk, Stage(name, seen, scores)

    def _step(self, walk: _Walk, read: ReadWords, level: int) -> _Walk:
        """Let the slots that still move point anew (eq. 5); the others cost nothing."""
        most = int(walk.moving.sum(dim=1).max())
        if most == 0:
            return walk
        order = (~walk.moving).byte().argsort(dim=1, stable=True)[:, :most]
        rows = torch.arange(len(order), device=order.device)[:, None]
        moving = walk.moving[rows, order]
        lengths = read.mapped.mask.sum(dim=1)[:, None]
        spans = self.space.spans(walk.latents[rows, order], lengths, level)
        levels = torch.full((len(order), 1), level, device=order.device)
        (layer,) = self.denoiser(read, spans, levels, moving)
        found, _ = self._pointed(layer.pointers, moving)
        probs = chosen_probs(layer.pointers, found, self.settings.pointer_loss)
        same = (found == walk.spans[rows, order]).all(dim=-1) & self.settings.settle

        def put(old: Tensor, new: Tensor) -> Tensor:
            kept = torch.where(moving[..., None], new.to(old.dtype), old[rows, order])
            return old.index_put((rows, order), kept)

        return replace(
            walk,
            spans=put(walk.spans, found),
            slots=put(walk.slots, layer.slots),
            probs=put(walk.probs, probs),
            moving=walk.moving.index_put((rows, order), moving & ~same),
        )

    def _renoised(
        self, walk: _Walk, words: WordFeatures, levels: tuple[int, int], fresh: Tensor | None
    ) -> _Walk:
        """Eqs. 6-7: from what the slots point at to the next noise level."""
        guess = self.space.latents(walk.spans, words.lengths[:, None])
        eta = self.settings.eta
        latents = self.space.next(walk.latents, guess, levels, eta=eta, fresh=fresh)
        return replace(walk, latents=latents)

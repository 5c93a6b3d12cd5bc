"""DiffusionNER: boundary diffusion for named entity recognition (Shen et al., ACL 2023).

The code follows the paper's figure; numbers of sections and equations are the paper's.
tests/papers/boundary_diffusion_paper.py has each equation as a plain function, and
docs/methods/boundary-diffusion.md lists where each of them is computed.

    training    entities → K slots → noise → denoising network → matching → losses
    prediction  noise or proposals → (denoising network → less noise) × γ → scores

| symbol | here | meaning |
|---|---|---|
| M, N, K | `words.lengths`, `gold.counts`, `_counts` | number of words, entities, slots |
| T, γ | `levels`, `steps` | number of noise levels, of denoising steps |
| l, r, c | `first`, `last`, label | left and right boundary (both included), type; 0 is ∅ |
| λ | `scale` | latents are between -λ and λ |
| x_0, x_t, x̂_0 | `latents` | boundaries in noise space: clean, noisy, predicted |
| ε, ε̂ | `slots.noise`, `old` | noise: drawn, predicted |
| β_t, ᾱ_t | `noise.noise_levels` | variance of the noise, remaining share of the signal |
| τ | `sampling_times` | levels of the denoising steps |
| H_S | `ReadWords`, `MappedWords` | word vectors |
| H_X, H̄_X | `Denoiser._pooled`, `Denoised.slots` | slot vectors before and after the span encoder |
| E_t | `Denoiser._time` | embedding of the noise level |
| P^l, P^r | `Pointers.probs` | boundary probabilities |
| P^c | softmax of `_label_logits` | type probabilities |
| π̂ | `_targets` | entity that each slot has to find |
| q, φ | `with_pointers`, `threshold` of `[decoding]` | score of a candidate, its minimum (φ / 3) |
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from spandet.detectors.base import Detector
from spandet.detectors.boundary_diffusion.denoiser import Denoised, Denoiser, ReadWords
from spandet.detectors.boundary_diffusion.linker import FragmentLinker
from spandet.detectors.boundary_diffusion.noise import (
    KeyedNoise,
    NoiseSpace,
    low_discrepancy,
    sampling_times,
)
from spandet.detectors.boundary_diffusion.pointers import (
    Pointers,
    boundary_loss,
    chosen_probs,
    with_entity,
    with_pointers,
)
from spandet.detectors.boundary_diffusion.settings import BoundaryDiffusionSettings
from spandet.detectors.boundary_diffusion.slots import (
    Slots,
    SlotState,
    clean_latents,
    draw_slots,
    match_slots,
    overlapped,
    slot_costs,
    slot_labels,
)
from spandet.layers.label_losses import label_loss, span_labels
from spandet.layers.span_head import SpanHead
from spandet.layers.span_scorer import ProposalScores, SpanScorer
from spandet.layers.span_view import SpanView
from spandet.spans.counts import candidate_counts
from spandet.spans.flat import FlatSpans, count_mask, distinct, from_rows
from spandet.tensors import GoldSpans, Loss, Losses, SpanPredictions, Stage, WordFeatures, to_device

_PROPOSAL_DIM = 128
_SLOTS_PER_WORD, _SLOTS_EXTRA = 0.5, 8


class BoundaryDiffusion(Detector):
    """Denoise the boundaries of K slots per sentence, and classify the slots or their spans."""

    def __init__(
        self, settings: BoundaryDiffusionSettings, *, dim: int, sentence_dim: int, labels: int
    ) -> None:
        super().__init__()
        del sentence_dim  # not used
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
        if settings.label_view == "slot":
            self.slot_head = nn.Sequential(
                nn.Linear(shape.dim, shape.dim), nn.GELU(), nn.Linear(shape.dim, labels)
            )
        else:
            self.span_head = SpanHead(dim=dim, out=labels, dropout=dropout)
        if settings.proposes:
            self.scorer = SpanScorer(dim=dim, inner=_PROPOSAL_DIM, dropout=dropout)
        # Last, so that the initial weights of the others do not depend on it.
        self.linker = FragmentLinker(dim=dim, dropout=dropout) if settings.fragments else None
        self.links_fragments = self.linker is not None

    def forward(self, words: WordFeatures, gold: GoldSpans, rngs: Sequence[Generator]) -> Losses:
        """Algorithm 1: the losses, for `draws` noise levels per sentence."""
        settings, words = self.settings, words.with_padding()
        losses: dict[str, Loss] = {}
        slots = self._slots(words, gold, rngs)
        proposed = None
        if self.scorer is not None:
            scores: ProposalScores = self.scorer(words)
            losses["proposal"] = scores.loss(gold)
            proposed, _ = scores.best(slots.mask.shape[1])
        mask, read = slots.mask.repeat(1, settings.draws), self.denoiser.read(words)
        denoised = self._denoised(words, read, slots, mask)
        spans = self._corrupted(words, gold, slots, proposed if denoised is None else denoised)
        layers = self.denoiser(
            read,
            spans,
            slots.levels,
            mask,
            every_layer=settings.auxiliary,
            pointer_gradients=not self.denoiser.pointers.pairwise,
        )
        targets = self._targets(words, gold, slots, spans, layers[-1])
        boundary = self._boundary_loss(read, layers, spans, targets, mask, gold)
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
            losses |= self.linker.losses(words, gold)
        return losses

    def detect(
        self, words: WordFeatures, rngs: Sequence[Generator], *, keep_all: bool = False
    ) -> SpanPredictions:
        """Algorithm 2 up to its post-processing. The words are encoded once for all steps."""
        del keep_all  # no slot is dropped
        words, settings = words.with_padding(), self.settings
        read = self.denoiser.read(words)
        fixed = settings.eval_slots or settings.slots
        counts = self._counts(words, fixed, settings.eval_slots_factor)
        noise, mask = KeyedNoise(rngs), count_mask(counts).to(words.mask.device)
        state, stage = self._started(words, mask, noise.at(0, counts).to(mask.device))
        trace, times = [stage], sampling_times(settings.first_level, settings.steps)
        for step, levels in enumerate(pairwise(times), start=1):
            state = self._step(state, read, levels[0])
            scores = state.probs.mean(dim=-1)
            trace.append(Stage(f"level {levels[0]}", state.spans.float(), scores))
            if levels[1] >= 0:
                fresh = noise.at(step, counts).to(mask.device) if settings.eta else None
                state = self._renoised(state, words, levels, fresh)
        legal = mask & (state.spans[..., 0] < state.spans[..., 1])
        # An inverted span is replaced by the empty span at its start.
        spans = torch.where(legal[..., None], state.spans, state.spans[..., :1].clamp(min=0))
        probs = self._label_logits(words, state.slots, spans).softmax(dim=-1)
        types = None
        if settings.score == "sum":
            types = probs[..., 1:].max(dim=-1).values
            probs = with_pointers(probs, state.probs)
        trace[-1] = replace(trace[-1], label_probs=probs)
        links = None if self.linker is None else self.linker(words, spans).links()
        return SpanPredictions(spans, probs, legal, tuple(trace), links, types)

    # Section 4.1: boundary forward diffusion

    def _counts(self, words: WordFeatures, fixed: int | None, factor: float = 1.0) -> list[int]:
        """K of each sentence, `factor` times as many as in training."""
        some = fixed and max(1, round(factor * fixed))
        extra = round(factor * _SLOTS_EXTRA)
        return candidate_counts(words.lengths.tolist(), some, factor * _SLOTS_PER_WORD, extra)

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
        """Eq. 4: the noisy spans x_t of all slots, in whole words; draws one after the other."""
        lengths, levels = words.lengths[:, None, None], slots.levels[..., None]
        clean = clean_latents(
            slots, gold, proposed, lengths, space=self.space, expansion=self.settings.expansion
        )
        noisy = self.space.noised(clean, slots.noise, levels)
        return self.space.spans(noisy, lengths, levels).flatten(1, 2)

    @torch.no_grad()
    def _denoised(
        self, words: WordFeatures, read: ReadWords, slots: Slots, mask: Bool[Tensor, "batch all"]
    ) -> Int[Tensor, "batch all 2"] | None:
        """Spans that slots point at in the first denoising step, from the noise of this step.

        Noised with the same noise, they are the states of the later denoising steps: the network
        learns from its own predictions, right and wrong, and not from entities alone.
        """
        if self.settings.expansion != "denoised":
            return None
        last = torch.full_like(slots.levels, self.settings.levels - 1)
        start = self.space.spans(slots.noise, words.lengths[:, None, None], last[..., None])
        (layer,) = self.denoiser(read, start.flatten(1, 2), last, mask)
        spans, legal = self._pointed(layer.pointers, mask)
        return torch.where(legal[..., None], spans, start.flatten(1, 2))

    # Section 4.1: boundary reverse diffusion

    def _started(
        self,
        words: WordFeatures,
        mask: Bool[Tensor, "batch span"],
        noise: Float[Tensor, "batch span 2"],
    ) -> tuple[SlotState, Stage]:
        """The slots before the first step: from noise, or from proposals with less noise."""
        lengths, scores, name = words.lengths[:, None], None, "noise"
        level = self.settings.first_level
        spans = torch.full((*mask.shape, 2), -1, device=mask.device)
        if self.settings.start == "proposals":
            assert self.scorer is not None  # noqa: S101 (`proposes` is true)
            spans, scores = self.scorer(words).best(mask.shape[1])
            clean, name = self.space.latents(spans, lengths), "proposal"
            latents = self.space.noised(clean, self.settings.start_noise * noise, level)
        elif self.settings.start == "low-discrepancy":
            latents = low_discrepancy(mask.shape[1]).to(noise).expand_as(noise)
        else:
            latents = noise
        slots = words.features.new_zeros(*mask.shape, self.denoiser.shape.dim)
        seen = self.space.spans(latents, lengths, level).float()
        probs = slots.new_zeros(latents.shape, dtype=torch.promote_types(slots.dtype, noise.dtype))
        return SlotState(latents, spans, slots, probs, mask), Stage(name, seen, scores)

    def _step(self, state: SlotState, read: ReadWords, level: int) -> SlotState:
        """Eq. 5: x̂_0 in whole words. Only slots that still move are computed."""
        index = state.moving_index()
        if index[1].shape[1] == 0:
            return state
        moving, latents = state.moving[index], state.latents[index]
        lengths = read.mapped.mask.sum(dim=1)[:, None]
        spans = self.space.spans(latents, lengths, level)
        levels = torch.full((len(spans), 1), level, device=spans.device)
        (layer,) = self.denoiser(read, spans, levels, moving)
        found, _ = self._pointed(layer.pointers, moving)
        probs = chosen_probs(layer.pointers, found, self.settings.pointer_loss)
        same = (found == state.spans[index]).all(dim=-1) & self.settings.settle
        return state.updated(index, found, layer.slots, probs, moving & ~same)

    def _renoised(
        self, state: SlotState, words: WordFeatures, levels: tuple[int, int], fresh: Tensor | None
    ) -> SlotState:
        """Eqs. 6-7: x of the next level, from x̂_0."""
        predicted = self.space.latents(state.spans, words.lengths[:, None])
        eta = self.settings.eta
        latents = self.space.next(state.latents, predicted, levels, eta=eta, fresh=fresh)
        return replace(state, latents=latents)

    # Section 4.2: network architecture (the rest is in denoiser.py)

    def _pointed(
        self, pointers: Pointers, mask: Bool[Tensor, "batch span"]
    ) -> tuple[Int[Tensor, "batch span 2"], Bool[Tensor, "batch span"]]:
        """The spans that slots point at, and the mask of those that are not inverted."""
        spans = pointers.ordered() if self.settings.pair == "ordered" else pointers.independent()
        return spans, mask & (spans[..., 0] < spans[..., 1])

    def _label_logits(
        self,
        words: WordFeatures,
        slots: Float[Tensor, "batch span dim"],
        spans: Int[Tensor, "batch span 2"],
    ) -> Float[Tensor, "batch span label"]:
        """Section 4.2, entity classifier: logits of P^c, from slots or from pointed spans."""
        if self.slot_head is not None:
            of_slots: Tensor = self.slot_head(slots)
            return of_slots
        assert self.span_head is not None  # noqa: S101 (there is one of the two)
        logits = SpanView(words).inner(self.span_head, from_rows(spans))
        return logits.view(*spans.shape[:2], -1)

    # Section 4.2: training objective

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
        """π̂, for each draw of a sentence by itself."""
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

    def _boundary_loss(
        self,
        read: ReadWords,
        layers: Sequence[Denoised],
        spans: Int[Tensor, "batch all 2"],
        targets: Int[Tensor, "batch all"],
        mask: Bool[Tensor, "batch all"],
        gold: GoldSpans,
    ) -> Loss:
        """The loss of the pointers of slots with an entity.

        Pointers that compare every slot with every word by a perceptron were computed without
        gradients, for the matching. Few slots have an entity: only theirs are computed again.
        """
        pointers, kind = [layer.pointers for layer in layers], self.settings.pointer_loss
        if self.denoiser.pointers.pairwise:
            chosen, targets = with_entity(targets)
            pointers = [self.denoiser.point(read.mapped, one, spans, chosen) for one in layers]
        count = mask.sum() if self.settings.boundary_mean == "slots" else None
        return boundary_loss(pointers, targets, gold, kind, slots=count)

    def _slot_label_loss(
        self, layers: Sequence[Denoised], targets: Tensor, mask: Tensor, gold: GoldSpans
    ) -> Loss:
        """Slots have the labels of the entities that they have to find."""
        assert self.slot_head is not None  # noqa: S101 (called only with one)
        logits = [self.slot_head(layer.slots[mask]) for layer in layers]
        sentence = mask.nonzero(as_tuple=True)[0]
        labels = slot_labels(targets, gold)[mask]
        return label_loss(logits, labels, sentence, self.settings.none_weight)

    def _span_label_loss(self, words: WordFeatures, spans: FlatSpans, gold: GoldSpans) -> Loss:
        """Spans have the labels of the entities with the same boundaries."""
        assert self.span_head is not None  # noqa: S101 (called only with one)
        logits = SpanView(words).inner(self.span_head, spans)
        labels = span_labels(spans, gold)
        return label_loss([logits], labels, spans.sentence, self.settings.none_weight)

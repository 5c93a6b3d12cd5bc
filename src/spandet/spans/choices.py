"""Names of choices and limits in span geometry: needs no torch."""

from typing import Literal

Matching = Literal["relative", "raw"]
"""Costs of an assignment: relative to those of "no entity", or as they are."""
Rest = Literal["greedy", "none"]
"""Proposals that an assignment leaves over: each gets its cheapest entity, or none."""
State = Literal["ends", "width"]
"""Meaning of a pair of latents: first and last word, or first word and width."""
Divisor = Literal["last", "length"]
"""Divisor of word positions for a value from 0 to 1: the last position, or the word count."""
MAX_EXPORTED_WORDS = 511
"""Words of the longest sentence that the ONNX graph of a whole model can take."""

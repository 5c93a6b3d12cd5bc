"""Pure geometry on tensors: tensors in, tensors out, right for none and for many."""

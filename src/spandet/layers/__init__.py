"""Neural layers that at least two detectors, or a detector and the encoder, share."""

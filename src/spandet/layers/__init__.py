"""Neural parts that at least two detectors use."""

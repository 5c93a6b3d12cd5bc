"""Neural layers that detectors and encoders share."""

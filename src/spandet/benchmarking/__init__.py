"""Measurements: what a detector costs, what settings are worth, which recipe scores best."""

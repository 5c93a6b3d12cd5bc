"""Locate and label: seed spans, a filter, boundary regression, labels."""

"""Neural parts that more than one place uses, or that are a story of their own."""

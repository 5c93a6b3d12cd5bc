"""Proposer and regressor: one proposal per token, refined with spatially modulated attention."""

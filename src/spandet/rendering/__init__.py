"""Rendering of results: HTML pages, tables, plots, progress."""

"""How results are shown: HTML, tables, plots, progress."""

"""The published methods once more, in plain loops: read beside the papers, and compared with."""

"""Second implementations of the published methods in plain loops, to compare the fast code with."""

"""Other people's engines: spaCy pipelines and Ray clusters. Each needs an extra of its name."""

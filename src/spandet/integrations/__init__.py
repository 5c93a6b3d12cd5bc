"""Integrations: spaCy pipelines and Ray clusters. Each needs the extra of its name."""

"""Models at work: from documents to documents with entities."""

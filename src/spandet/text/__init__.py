"""Documents, sentences, words and entities. Nothing here loads torch."""

from spandet.text.dicts import to_records
from spandet.text.document import Document, WordRow
from spandet.text.entity import Entity
from spandet.text.sentence import Sentence
from spandet.text.spans import CharSpan, WordSpan

__all__ = ["CharSpan", "Document", "Entity", "Sentence", "WordRow", "WordSpan", "to_records"]

"""Documents, sentences, words and entities. Nothing here loads torch."""

from spandet.text.dicts import to_records
from spandet.text.document import Document, WordRow
from spandet.text.entity import CharSpan, Entity, WordSpan
from spandet.text.sentence import Sentence

__all__ = ["CharSpan", "Document", "Entity", "Sentence", "WordRow", "WordSpan", "to_records"]

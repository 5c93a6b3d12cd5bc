"""A two-layer head on spans that maps boundary words once per word, not once per span."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from spandet.layers.dropout import Dropout

INIT_STD = 0.02


class SpanHead(nn.Module):
    """Linear([inside; left word; right word]) → GELU → Linear.

    The first linear map is split into three: those of the two boundary words are computed per word
    and looked up per span; only that of the pooled words is computed per span.
    """

    def __init__(self, *, dim: int, out: int, dropout: float, sentence_dim: int = 0) -> None:
        super().__init__()
        self.inside = nn.Linear(dim, dim)
        self.left = nn.Linear(dim, dim, bias=False)
        self.right = nn.Linear(dim, dim, bias=False)
        self.whole = nn.Linear(sentence_dim, dim, bias=False) if sentence_dim else None
        self.out = nn.Linear(dim, out)
        self.gelu = nn.GELU()
        self.dropout = Dropout(dropout)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.normal_(parameter, std=INIT_STD)

    def forward(
        self,
        inside: Float[Tensor, "span dim"],
        words: Float[Tensor, "word dim"],
        left: Int[Tensor, " span"],
        right: Int[Tensor, " span"],
        whole: Float[Tensor, "span sentence_dim"] | None = None,
    ) -> Float[Tensor, "span out"]:
        """Scores of spans.

        Args:
            inside: Pooled words of each span.
            words: All words of the batch in one list.
            left: Index of the word at the left boundary of each span.
            right: Index of the word at the right boundary.
            whole: Sentence vector of each span, for heads with `sentence_dim`.
        """
        hidden = self.inside(self.dropout(inside))
        hidden = hidden + self.left(self.dropout(words)).index_select(0, left)
        hidden = hidden + self.right(self.dropout(words)).index_select(0, right)
        if self.whole is not None and whole is not None:
            hidden = hidden + self.whole(self.dropout(whole))
        scores: Tensor = self.out(self.gelu(hidden))
        return scores

"""Chance is an argument: generators that depend on named keys and on nothing else."""

from hashlib import blake2b

from torch import Generator


def generator(*keys: int | str) -> Generator:
    """A generator on the CPU for these keys: the same keys, the same numbers, everywhere."""
    digest = blake2b(
        "\0".join(map(str, keys)).encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()
    return Generator().manual_seed(int.from_bytes(digest) >> 1)

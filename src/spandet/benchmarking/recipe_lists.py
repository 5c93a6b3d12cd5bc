"""Lists of recipes: a base and what each variant of it changes, in one TOML file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import MinLen

from spandet.config import Settings, read_toml
from spandet.errors import ConfigError, UsageError
from spandet.training.recipe import Recipe

_VARIANTS = "variants"


class VariantSettings(Settings):
    """One row of a table."""

    name: Annotated[str, MinLen(1)]
    """What the row is called."""
    base: str = ""
    """A recipe of its own, instead of that of the list."""
    set: tuple[str, ...] = ()
    """Assignments such as `detector.use_filter=false`; none: the base as it is."""


class RecipeListSettings(Settings):
    """What a list of recipes says."""

    about: str
    """What the table is about, in a few words."""
    base: str
    """A recipe; its path is seen from the folder of the list."""
    set: tuple[str, ...] = ()
    """Assignments for all variants."""
    variants: Annotated[tuple[VariantSettings, ...], MinLen(1)]
    """The rows; others are compared with the first."""


@dataclass(frozen=True)
class Entry:
    """A recipe that is to be trained."""

    name: str
    path: Path
    """Of the recipe, or of the base."""
    set: tuple[str, ...] = ()

    def recipe(self, more: Iterable[str] = ()) -> Recipe:
        """The recipe after its own assignments and some more.

        Raises:
            ConfigError: names the row, and what is wrong with it.
        """
        try:
            return Recipe.load(self.path, [*self.set, *more])
        except ConfigError as error:
            raise ConfigError(f"{self.name}: {error}") from None

    @property
    def folder(self) -> str:
        """Its name as one of a folder."""
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-.") or "recipe"


@dataclass(frozen=True)
class RecipeList:
    """Recipes that belong into one table."""

    name: str
    """Of the file, without its folders."""
    about: str
    entries: tuple[Entry, ...]


def read_lists(paths: Sequence[Path]) -> list[RecipeList]:
    """Lists as they are, and all plain recipes together as one more.

    Raises:
        SpandetError: a file cannot be read, or is neither a recipe nor a list.
    """
    texts = {path: _text(path) for path in paths}
    values = {path: read_toml(text, name=str(path)) for path, text in texts.items()}
    plain = tuple(
        Entry("/".join(path.with_suffix("").parts[-2:]), path)
        for path in paths
        if _VARIANTS not in values[path]
    )
    lists = [_list(path, values[path]) for path in paths if _VARIANTS in values[path]]
    found = [RecipeList("recipes", "Recipes", plain), *lists] if plain else lists
    _check_folders([own.name for own in found], "lists")
    for own in found:
        _check_folders([entry.folder for entry in own.entries], f"variants of {own.name}")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text") from None


def _list(path: Path, values: dict[str, object]) -> RecipeList:
    listed = RecipeListSettings.build(values, where=path.name)
    entries = tuple(
        Entry(row.name, path.parent / (row.base or listed.base), (*listed.set, *row.set))
        for row in listed.variants
    )
    for entry in entries:
        if not entry.path.is_file():
            raise ConfigError(f"[{path.name}] base: there is no recipe {entry.path}")
    return RecipeList(path.stem, listed.about, entries)


def _check_folders(names: Sequence[str], what: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"two {what} would share the folder {twice[0]}; rename one of them")

"""Settings of earlier versions: what became of a name that recipes and model folders still have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED: Mapping[str, Mapping[str, str]] = {}
"""Class of settings → old name → new name."""
REMOVED: Mapping[str, Mapping[str, Any]] = {}
"""Class of settings → old name → the only value that can still be read: what is always done now."""


def current_names(group: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values under the names of this version.

    Args:
        group: The class of the settings.
        values: As a recipe or the config of a model has them.

    Raises:
        ValueError: a setting stands there under both names, or was removed and is set to something
            that this version cannot do.
    """
    renamed, removed = RENAMED.get(group, {}), REMOVED.get(group, {})
    result: dict[str, Any] = {}
    for name, value in values.items():
        if name in removed:
            if value != removed[name]:
                raise ValueError(
                    f"{name} was removed: {value!r} cannot be read, only {removed[name]!r}"
                )
            continue
        new = renamed.get(name, name)
        if new in result or (new != name and new in values):
            raise ValueError(f"{name} is now called {new}, and both are set")
        result[new] = value
    return result

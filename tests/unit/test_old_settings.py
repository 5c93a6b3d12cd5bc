"""Recipes and models of earlier versions keep loading."""

from __future__ import annotations

import pytest

from spandet import old_settings
from spandet.config import Settings
from spandet.errors import ConfigError


class Oven(Settings):
    """An example."""

    heat: int = 200
    """Degrees."""
    fan: bool = False
    """Use the fan?"""


@pytest.fixture(autouse=True)
def _tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_settings, "RENAMED", {"Oven": {"hotness": "heat"}})
    monkeypatch.setattr(old_settings, "REMOVED", {"Oven": {"light": True}})


def test_an_old_name_is_read_as_the_new_one() -> None:
    assert Oven.build({"hotness": 180}, where="oven") == Oven(heat=180)
    assert Oven.model_validate_json('{"hotness": 180, "fan": true}') == Oven(heat=180, fan=True)


def test_an_old_name_replaces_the_value_of_a_preset() -> None:
    assert Oven.filled({"heat": 150, "fan": True}, {"hotness": 180}) == {"heat": 180, "fan": True}


def test_both_names_at_once_are_an_error() -> None:
    for values in ({"hotness": 180, "heat": 200}, {"heat": 200, "hotness": 180}):
        with pytest.raises(ConfigError, match="hotness is now called heat, and both are set"):
            Oven.build(values, where="oven")


def test_a_removed_setting_is_read_only_with_the_value_that_holds_now() -> None:
    assert Oven.build({"light": True}, where="oven") == Oven()
    with pytest.raises(ConfigError, match="light was removed: False cannot be read, only True"):
        Oven.build({"light": False}, where="oven")


def test_the_old_name_is_not_a_setting() -> None:
    assert "hotness" not in Oven(heat=180).model_dump()
    with pytest.raises(ConfigError, match="does not know hot;"):
        Oven.build({"hot": 1}, where="oven")

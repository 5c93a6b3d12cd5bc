"""Recipes and models of earlier versions keep loading."""

from __future__ import annotations

from typing import Any

import pytest

from spandet import old_settings
from spandet.config import Settings, override
from spandet.errors import ConfigError
from spandet.inference.decoding import DecodingSettings
from spandet.inference.model_settings import ModelSettings
from spandet.training.recipe import Recipe


class OvenSettings(Settings):
    """An example."""

    heat: int = 200
    """Degrees."""
    fan: bool = False
    """Whether to use the fan."""


@pytest.fixture
def _tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_settings, "RENAMED", {"OvenSettings": {"hotness": "heat"}})
    monkeypatch.setattr(old_settings, "REMOVED", {"OvenSettings": {"light": True}})


def test_a_setting_that_moved_is_read_from_its_old_section() -> None:
    values: dict[str, Any] = {"encoder": {"hashed": {}}, "detector": {"name": "biaffine"}}
    old = Recipe.from_values({**values, "decoding": {"tune": False, "threshold": 0.3}})
    assert (old.training.tune, old.model.decoding.threshold) == (False, 0.3)
    assert Recipe.from_values({**values, "training": {"tune": False}}).training.tune is False
    both = {**values, "decoding": {"tune": False}, "training": {"tune": True}}
    assert Recipe.from_values(both).training.tune is True
    assert "tune" not in Recipe.from_values(both).to_values()["decoding"]
    assert Recipe.from_values(override(values, ["decoding.tune=false"])).training.tune is False
    assert DecodingSettings.build({"tune": False}, where="decoding") == DecodingSettings()


@pytest.mark.usefixtures("_tables")
def test_an_old_name_is_read_as_the_new_one() -> None:
    assert OvenSettings.build({"hotness": 180}, where="oven") == OvenSettings(heat=180)
    assert OvenSettings.model_validate_json('{"hotness": 180, "fan": true}') == OvenSettings(
        heat=180, fan=True
    )


@pytest.mark.usefixtures("_tables")
def test_an_old_name_replaces_the_value_of_a_preset() -> None:
    assert OvenSettings.filled({"heat": 150, "fan": True}, {"hotness": 180}) == {
        "heat": 180,
        "fan": True,
    }


@pytest.mark.usefixtures("_tables")
def test_both_names_at_once_are_an_error() -> None:
    for values in ({"hotness": 180, "heat": 200}, {"heat": 200, "hotness": 180}):
        with pytest.raises(ConfigError, match="hotness is now called heat, and both are set"):
            OvenSettings.build(values, where="oven")


@pytest.mark.usefixtures("_tables")
def test_a_removed_setting_is_read_only_with_the_value_that_holds_now() -> None:
    assert OvenSettings.build({"light": True}, where="oven") == OvenSettings()
    with pytest.raises(
        ConfigError, match="light was removed: only True is still supported, got False"
    ):
        OvenSettings.build({"light": False}, where="oven")


@pytest.mark.usefixtures("_tables")
def test_the_old_name_is_not_a_setting() -> None:
    assert "hotness" not in OvenSettings(heat=180).model_dump()
    with pytest.raises(ConfigError, match="has no setting hot;"):
        OvenSettings.build({"hot": 1}, where="oven")


@pytest.mark.usefixtures("_tables")
@pytest.mark.parametrize("stored", ["hotness", "heat"])
@pytest.mark.parametrize("assigned", ["hotness", "heat"])
def test_an_assignment_replaces_a_value_under_either_name(stored: str, assigned: str) -> None:
    values = override({"oven": {stored: 150, "fan": True}}, [f"oven.{assigned}=180"])
    assert OvenSettings.build(values["oven"], where="oven") == OvenSettings(heat=180, fan=True)


@pytest.mark.parametrize(
    ("detector", "section", "old", "new"),
    [
        ("span-jury", "decoding", {"none_weight": 0.25}, {"min_odds": 0.25}),
        ("biaffine", "detector", {"emission": 0.25}, {"min_odds": 0.25}),
        (
            "proposer-regressor",
            "detector",
            {"emission": 0.25, "none_weight": 0.5},
            {"min_odds": 0.25, "none_weight": 0.5},
        ),
        ("boundary-diffusion", "detector", {"nil_weight": 0.5}, {"none_weight": 0.5}),
        (
            "boundary-diffusion",
            "detector",
            {
                "link_weight": 1.0,
                "proposal_weight": 1.0,
                "slots_per_word": 0.5,
                "slots_extra": 8,
            },
            {},
        ),
        ("locate-and-label", "detector", {"outer_edge": "clamp"}, {}),
        ("span-jury", "detector", {"nomination_weight": 1.0}, {}),
    ],
)
def test_the_settings_of_earlier_versions_are_read(
    detector: str, section: str, old: dict[str, float], new: dict[str, float]
) -> None:
    def resolved(values: dict[str, float], *assignments: str) -> ModelSettings:
        sections: dict[str, dict[str, object]] = {
            "encoder": {"hashed": {}},
            "detector": {"name": detector},
        }
        sections.setdefault(section, {}).update(values)
        return ModelSettings.resolve(override(sections, assignments))

    assert resolved(old) == resolved(new)
    for name, value in new.items():
        assert resolved(old, f"{section}.{name}={value / 2}") == resolved({**new, name: value / 2})


@pytest.mark.parametrize(
    ("detector", "old", "allowed"),
    [
        (
            "locate-and-label",
            {"outer_edge": "learned"},
            "only 'clamp' is still supported, got 'learned'",
        ),
        ("span-jury", {"nomination_weight": 2.0}, "only 1.0 is still supported, got 2.0"),
        ("boundary-diffusion", {"slots_extra": 4}, "only 8 is still supported, got 4"),
    ],
)
def test_a_removed_choice_is_an_error_with_the_remaining_choices(
    detector: str, old: dict[str, object], allowed: str
) -> None:
    with pytest.raises(ConfigError, match=allowed):
        ModelSettings.resolve({"encoder": {"hashed": {}}, "detector": {"name": detector, **old}})


def test_an_old_name_replaces_the_value_of_a_detectors_preset() -> None:
    def resolved(**values: object) -> ModelSettings:
        detector = {"name": "boundary-diffusion", "preset": "released-code", **values}
        return ModelSettings.resolve({"encoder": {"hashed": {}}, "detector": detector})

    assert resolved().detector.none_weight == "batch"  # type: ignore[attr-defined]
    assert resolved(nil_weight="balanced") == resolved(none_weight="balanced") != resolved()
    changed = override(
        {"detector": {"name": "boundary-diffusion", "nil_weight": "batch"}},
        ["detector.none_weight=balanced"],
    )
    assert changed["detector"] == {"name": "boundary-diffusion", "none_weight": "balanced"}

"""Options of detectors: described in the settings class, and listed on the page of the detector."""

from __future__ import annotations

from pathlib import Path

import pytest

from spandet.detectors import DETECTORS

METHODS = Path(__file__).parents[3] / "docs" / "methods"


@pytest.mark.parametrize("name", DETECTORS)
def test_every_option_is_described_and_on_the_page(name: str) -> None:
    page = (METHODS / f"{name}.md").read_text("utf-8")
    for option, field in DETECTORS[name].settings.model_fields.items():
        if option not in ("name", "preset"):
            assert field.description, f"{option} has no description"
            assert f"`{option}`" in page, f"{name}.md does not list {option}"

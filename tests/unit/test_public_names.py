"""The public names of `spandet`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import spandet


def test_every_public_name_can_be_imported() -> None:
    assert sorted(spandet.__all__, key=str.lower) == sorted(set(spandet.__all__), key=str.lower)
    for name in spandet.__all__:
        assert getattr(spandet, name).__module__.startswith("spandet.")


def test_an_unknown_name_is_an_error_with_the_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'detect'"):
        _ = spandet.detect


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, spandet; print([m for m in sys.modules if m.startswith('spandet.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

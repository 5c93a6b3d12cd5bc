"""Every command with a model argument accepts the name of a bundled model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from spandet import write
from spandet.cli import app
from spandet.inference.model_names import find_model
from spandet.onnx_export.report import ExportReport
from spandet.text import CharSpan, Document, Entity

NAME = "bio-en"
TEXT = "IL-2 gene expression requires NF-kappa B."
DATA = Document(TEXT, (Entity(CharSpan(0, 4), "protein"),), id="1")
QUICK = ("--timed", "1", "--rounds", "1", "--batch", "1")


def commands() -> Iterator[str]:
    """All commands with an argument MODEL, or `models`' NAME."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[str]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))
        if {"model", "name"} & {parameter.name for parameter in command.params}:
            yield " ".join(path)

    return walk(typer.main.get_command(app), ())


ARGUMENTS: dict[str, tuple[str, ...]] = {
    "predict": ("DATA", "-o", "OUT"),
    "trace": (TEXT,),
    "serve": ("--port", "0"),
    "export": ("--onnx", "OUT"),
    "pack": ("OUT", "--data", "DATA", "--max-loss", "100"),
    "models": (),
    "benchmark speed": ("DATA", *QUICK),
    "benchmark stages": ("DATA",),
    "benchmark sweep": ("DATA", "--set", "decoding.threshold=0.5", *QUICK),
}


def test_all_commands_with_a_model_are_tested() -> None:
    assert set(ARGUMENTS) == set(commands())


@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_bundled_model_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    seen: list[Path] = []
    _spare(monkeypatch, seen)
    monkeypatch.chdir(tmp_path)
    write([DATA], tmp_path / "data.jsonl")
    places = {"DATA": "data.jsonl", "OUT": "out.jsonl"}
    words = [*command.split(), NAME, *(places.get(word, word) for word in ARGUMENTS[command])]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert seen == ([find_model(NAME)] if command == "export" else [])


def _spare(monkeypatch: pytest.MonkeyPatch, seen: list[Path]) -> None:
    """Leave out what takes minutes, or does not end."""

    def exported(_: object, model: Path, __: Path) -> ExportReport:
        seen.append(model)
        raise typer.Exit(0)

    monkeypatch.setattr("spandet.onnx_export.run._run", exported)

    def serve(_: object, listener: Any, *, ready: Callable[[], None], **__: object) -> None:
        ready()
        listener.close()

    monkeypatch.setattr("spandet.serving.server.run", serve)
    # The service configures the log of the whole process, which other tests use.
    monkeypatch.setattr("spandet.serving.server.set_up_log", lambda **_: None)


def test_on_ray_a_model_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Path] = []

    def run_ray(model: str, *_: object, **__: object) -> None:
        seen.append(find_model(model))
        raise typer.Exit(0)

    monkeypatch.setattr("spandet.integrations.ray_engine.run_ray", run_ray)
    words = ["predict", NAME, "data.jsonl", "-o", str(tmp_path / "out"), "--engine", "ray"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert seen == [find_model(NAME)]

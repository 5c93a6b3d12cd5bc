"""Manifests of model folders: every loaded file is checked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spandet import generate
from spandet.errors import SpandetError, UsageError
from spandet.inference.manifest import MANIFEST, UNCHECKED, check_files, finish_replacing
from spandet.inference.model_names import models
from spandet.inference.model_settings import ModelSettings
from spandet.inference.recognizer import Recognizer
from support.tiny_bert import save_tiny_bert

HASHED = {"hashed": {"dim": 8, "rows": 16}, "fusion": {"dim": 8}}
DETECTOR = {"name": "biaffine"}


def build(encoder: dict[str, Any], sentences: int = 12) -> Recognizer:
    settings_ = ModelSettings.resolve({"encoder": encoder, "detector": DETECTOR})
    return Recognizer.build(settings_, generate(sentences, seed=3))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with a tiny transformer; tests that damage it must repair it."""
    folder = tmp_path_factory.mktemp("model")
    bert = save_tiny_bert(folder / "bert", ["a", "##b", "c"])
    build({"transformer": {"name": str(bert)}, "fusion": {"dim": 8}}).save_pretrained(folder / "m")
    return folder / "m"


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def as_before_manifests(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    config = json.loads((folder / "config.json").read_text())
    del config["manifest"]
    (folder / "config.json").write_text(json.dumps(config))


def test_every_file_of_the_model_is_in_the_manifest(model: Path) -> None:
    listed = json.loads((model / MANIFEST).read_text())["files"]
    found = {path.relative_to(model).as_posix() for path in files_of(model)}
    assert found == {*listed, MANIFEST}
    assert {"config.json", "vocabulary.json", "model.safetensors"} < set(listed)
    assert {"transformer/config.json", "transformer/tokenizer.json"} < set(listed)
    check_files(model)
    Recognizer.from_pretrained(model)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_an_error_with_its_name(model: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(files_of(model)))
    content = path.read_bytes()
    kind = data.draw(st.sampled_from(["change", "cut", "add", "lose"]))
    place = data.draw(st.integers(0, len(content) - 1))
    try:
        if kind == "change":
            bits = data.draw(st.integers(1, 255))
            changed = bytes([content[place] ^ bits])
            path.write_bytes(content[:place] + changed + content[place + 1 :])
        elif kind == "cut":
            path.write_bytes(content[:place])
        elif kind == "add":
            path.write_bytes(content + b"\n")
        else:
            path.unlink()
        with pytest.raises(UsageError) as raised:
            Recognizer.from_pretrained(model)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)
    finally:
        path.write_bytes(content)


def test_the_check_can_be_skipped_for_edited_models(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited = Path(shutil.copytree(model, tmp_path / "m"))
    text = (edited / "config.json").read_text()
    (edited / "config.json").write_text(text.replace('"threshold": 0.5', '"threshold": 0.25'))
    with pytest.raises(UsageError, match=r"config\.json is damaged, or was changed.*UNCHECKED=1"):
        Recognizer.from_pretrained(edited)
    monkeypatch.setenv(UNCHECKED, "1")
    assert Recognizer.from_pretrained(edited).decoding.threshold == 0.25


def test_other_files_in_the_folder_are_not_checked(model: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(model, tmp_path / "m"))
    for name in ("README.md", "run.json", "recipe.toml", "pack.json", "log.jsonl"):
        (copied / name).write_text("of another program")
    check_files(copied)


@pytest.mark.parametrize("name", ["onnx.json", "transformer/added_tokens.json"])
def test_an_unlisted_file_that_would_be_loaded_is_refused(
    model: Path, tmp_path: Path, name: str
) -> None:
    copied = Path(shutil.copytree(model, tmp_path / "m"))
    (copied / name).write_text("{}")
    with pytest.raises(UsageError, match=f"{name} is not listed in manifest"):
        Recognizer.from_pretrained(copied)


def test_a_manifest_with_paths_outside_the_folder_is_refused(model: Path, tmp_path: Path) -> None:
    from spandet.inference import manifest  # noqa: PLC0415

    copied = Path(shutil.copytree(model, tmp_path / "m"))
    listed = {**manifest._read(copied), "../secret": (1, "0")}
    (copied / MANIFEST).write_bytes(manifest._rendered(listed))
    with pytest.raises(UsageError, match=r"manifest\.json is damaged"):
        check_files(copied)


def test_a_model_from_before_manifests_is_loaded(model: Path, tmp_path: Path) -> None:
    old = Path(shutil.copytree(model, tmp_path / "m"))
    as_before_manifests(old)
    Recognizer.from_pretrained(old)


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "vocabulary.json",
        "model.safetensors",
        "transformer/config.json",
        "transformer/tokenizer.json",
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"[]", b"{}", b"[" * 100_000])
def test_a_damaged_model_without_manifest_is_a_one_line_error(
    model: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    old = Path(shutil.copytree(model, tmp_path / "m"))
    as_before_manifests(old)
    if content is None:
        (old / name).unlink()
    else:
        (old / name).write_bytes(content)
    with pytest.raises(SpandetError) as raised:
        Recognizer.from_pretrained(old)
    assert str((old / name).parent) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": 5}, "expected a list of strings as labels, found 5"),
        ({"labels": ["x", 1]}, "expected a list of strings as labels"),
        ({"labels": ["x", "y", "x"]}, "it has the label 'x' twice"),
        ({"encoder": 5}, "encoder must be a section, got 5"),
        ({"detector": []}, r"detector must be a section, got \[\]"),
        ({"detector": {"name": 7}}, r"\[detector\] name is '7'"),
        ({"other": {}}, "there is no section other"),
    ],
)
def test_invalid_settings_are_errors_with_their_names(
    model: Path, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    old = Path(shutil.copytree(model, tmp_path / "m"))
    as_before_manifests(old)
    config = json.loads((old / "config.json").read_text()) | change
    (old / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match=rf"config\.json is damaged: {words}"):
        Recognizer.from_pretrained(old)


class Killed(BaseException):
    """An exception that no code catches, like SIGKILL."""


def save_and_die(
    recognizer: Recognizer, folder: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Save a model and raise `Killed` after `after` renames; returns whether it was raised."""
    left = iter(range(after))

    def counted(method: Any) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            if next(left, None) is None:
                monkeypatch.setattr(
                    "spandet.inference.manifest.shutil.rmtree", lambda *_, **__: None
                )
                raise Killed
            return method(*arguments, **options)

        return run

    with monkeypatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        try:
            recognizer.save_pretrained(folder)
        except Killed:
            return True
        finally:
            monkeypatch.undo()
    return False


@pytest.mark.parametrize("old", [False, True])
def test_a_killed_save_leaves_no_mixed_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    first, second = build(HASHED), build({**HASHED, "characters": {}})
    refused = 0
    for after in range(100):
        place = tmp_path / str(after)
        first.save_pretrained(place)
        if old:
            as_before_manifests(place)
        if not save_and_die(second, place, after, monkeypatch):
            break
        if (place / MANIFEST).exists() or '"manifest"' not in (place / "config.json").read_text():
            assert Recognizer.from_pretrained(place).settings in (first.settings, second.settings)
        else:
            words = r"manifest\.json is missing: the model was not written completely"
            with pytest.raises(UsageError, match=words):
                Recognizer.from_pretrained(place)
            refused += 1
        finish_replacing(place)
        assert Recognizer.from_pretrained(place).settings in (first.settings, second.settings)
        second.save_pretrained(place)
        assert Recognizer.from_pretrained(place).settings == second.settings
        assert not list(place.glob(".*"))
    assert 3 <= refused < after < 99


def test_saving_removes_files_of_another_model(model: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(model, tmp_path / "m"))
    (place / "README.md").write_text("a card")
    plain = build(HASHED)
    plain.save_pretrained(place)
    listed = set(json.loads((place / MANIFEST).read_text())["files"])
    assert listed == {"config.json", "vocabulary.json", "model.safetensors"}
    found = {path.relative_to(place).as_posix() for path in files_of(place)}
    assert found == {*listed, MANIFEST, "README.md"}
    again = Recognizer.from_pretrained(model)
    (place / "transformer").mkdir(exist_ok=True)
    (place / "transformer" / "added_tokens.json").write_text('{"zzz": 99}')
    again.save_pretrained(place)
    assert not (place / "transformer" / "added_tokens.json").exists()
    Recognizer.from_pretrained(place)


def test_bundled_models_have_manifests() -> None:
    for each in models():
        if each.origin == "bundled":
            assert (Path(each.folder) / MANIFEST).is_file()
            assert json.loads((Path(each.folder) / "config.json").read_text())["manifest"] is True
            check_files(Path(each.folder))

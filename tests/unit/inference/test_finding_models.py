"""Names of models: folders first, then local and bundled names, then the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spandet.errors import UsageError
from spandet.inference import model_names
from spandet.inference.model_names import find_model, fingerprint, local_folder, models


def make_model(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True)
    values = {"labels": ["x", "y"], "detector": {"name": "locate-and-label"}, **config}
    (folder / "config.json").write_text(json.dumps(values))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(model_names, "_BUNDLED", tmp_path / "bundled")
    monkeypatch.setenv("SPANDET_MODELS", str(tmp_path / "local"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_takes_precedence_over_a_name(root: Path) -> None:
    local = make_model(root / "local" / "news")
    assert find_model("news") == local
    bundled = make_model(root / "bundled" / "news")
    assert find_model("news") == bundled
    make_model(root / "news")
    assert find_model("news") == Path("news")


def test_models_are_listed_with_their_facts(root: Path) -> None:
    assert list(models()) == []
    make_model(root / "bundled" / "b")
    local = make_model(root / "local" / "a")
    (local / "run.json").write_text('{"dev": {"micro": {"f1": 0.5}}}')
    (root / "local" / "stray").mkdir()
    first, second = models()
    assert (first.name, first.origin, first.dev_f1) == ("b", "bundled", None)
    assert (second.name, second.origin, second.dev_f1) == ("a", "local", 0.5)
    assert second.labels == ("x", "y")
    assert second.bytes == sum(path.stat().st_size for path in local.iterdir())


def test_a_packed_model_is_listed_with_the_scores_of_packing(root: Path) -> None:
    folder = make_model(root / "local" / "a")
    (folder / "run.json").write_text('{"dev": {"micro": {"f1": 0.5}}}')
    scores = [{"data": "dev", "f1": 0.4}, {"data": "more", "f1": 0.3}]
    (folder / "pack.json").write_text(json.dumps({"scores": scores}))
    (found,) = models()
    assert found.dev_f1 == 0.4
    assert found.to_json()["measured"] == scores
    (folder / "pack.json").write_text('{"scores": []}')
    with pytest.raises(UsageError, match=r"a/pack\.json is damaged: it has no F1"):
        list(models())


def test_a_damaged_model_is_an_error_with_its_path(root: Path) -> None:
    (make_model(root / "local" / "a") / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"a/config\.json is damaged: expected a list of strings"):
        list(models())


def test_an_unknown_name_is_an_error_with_the_known_names(root: Path) -> None:
    make_model(root / "local" / "news")
    with pytest.raises(UsageError, match=r"there is no model 'new': .*\(news; local ones are in"):
        find_model("new")


def test_a_wrong_path_is_not_looked_up_on_the_hub(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_names, "_downloaded", lambda name: pytest.fail(f"request for {name}"))
    (root / "runs").mkdir()
    for name in ("runs/mdoel", "./x", "../a/b", "/a/b", "a/b/c", "a\\b"):
        with pytest.raises(UsageError, match="there is no model"):
            find_model(name)


def test_offline_the_hub_is_an_error_of_one_line(root: Path) -> None:
    with pytest.raises(
        UsageError, match=r"'some/model', and it cannot be fetched .*: \S"
    ) as raised:
        find_model("some/model")
    assert "\n" not in str(raised.value)


def test_only_safe_files_are_downloaded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request: dict[str, Any] = {}

    def download(name: str, **options: Any) -> str:
        request.update(options, name=name)
        return str(root)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert find_model("some/model") == root
    assert request["name"] == "some/model"
    assert not {"*.bin", "*.pt", "*.pkl", "*.py", "*"} & set(request["allow_patterns"])


def test_the_fingerprint_depends_on_weights_and_settings(root: Path) -> None:
    folder = make_model(root / "a")
    before = fingerprint(folder)
    (folder / "README.md").write_text("a card")
    (folder / "run.json").write_text("{}")
    assert fingerprint(folder) == before
    assert fingerprint(make_model(root / "copy")) == before
    (folder / "model.safetensors").write_bytes(b"others")
    assert fingerprint(folder) != before


def test_the_default_models_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPANDET_MODELS", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert local_folder() == Path("/data/spandet/models")

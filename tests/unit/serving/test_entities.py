"""POST /v1/entities and /v1/trace give the predictions of the recognizer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from spandet.encoding import Example, examples_of
from spandet.encoding.examples import ContextSizes
from spandet.inference.ensemble import Ensemble, Member, enough_context
from spandet.inference.ensemble_folder import MemberRecord
from spandet.inference.tracing import trace
from spandet.serving.work import split_text
from spandet.text import Document
from support.random_models import random_recognizer
from support.serving_toys import (
    RecordingRecognizer,
    entity_dicts,
    metric,
    permissive_recognizer,
    sentences,
    until,
    with_client,
)


async def found(client: httpx.AsyncClient, **body: Any) -> list[Any]:
    response = await client.post("/v1/entities", json=body)
    assert response.status_code == 200, response.text
    return [document["entities"] for document in response.json()["documents"]]


def test_one_text_and_several_give_the_predictions_of_the_recognizer() -> None:
    texts = [*sentences(10), "", " \n ", "x"]

    async def scenario(client: httpx.AsyncClient) -> None:
        together = await found(client, texts=texts)
        assert together == [entity_dicts(permissive_recognizer()(text)) for text in texts]
        assert sum(map(len, together)) > 10
        for text, entities in zip(texts, together, strict=True):
            assert await found(client, text=text) == [entities]
        assert await found(client, texts=[]) == []

    with_client(scenario)


def test_min_score_and_labels_act_as_in_the_recognizer() -> None:
    (text,) = sentences(1)
    recognizer = permissive_recognizer()
    label = recognizer(text).entities[0].label

    async def scenario(client: httpx.AsyncClient) -> None:
        for options in ({"min_score": 0.0}, {"min_score": 0.9}, {"labels": [label]}, {}):
            expected = entity_dicts(recognizer(text, **options))
            assert await found(client, text=text, **options) == [expected]

    with_client(scenario)


@pytest.mark.parametrize("context", [0, 7, 1000])
def test_the_parts_of_a_text_have_the_context_of_the_whole(context: int) -> None:
    text = "\n\n".join(sentences(30)) + "   "
    whole = Document(text)
    parts = split_text(text, max_chars=300, context_words=context)
    assert len(parts) > 5
    words = [word for sentence in whole.sentences for word in sentence.words]
    position = 0
    for part in parts:
        own = part.document.own_sentences
        assert own is not None
        assert text[part.offset :].startswith(part.document.text)
        assert own[0].before == tuple(words[max(0, position - context) : position])
        for sentence in own:
            for start, word in zip(sentence.starts, sentence.words, strict=True):
                assert part.document.text[start:].startswith(word)
            position += len(sentence)
        assert own[-1].after == tuple(words[position : position + context])
    assert position == len(words)


@pytest.mark.parametrize("words", [1, 30, 10_000])
def test_the_parts_of_a_text_have_the_passages_of_the_whole(words: int) -> None:
    text = "\n\n".join(sentences(30)) + "   "

    def read(document: Document) -> list[Example]:
        return examples_of(document, context_words=0, passage_words=words)

    parts = split_text(text, max_chars=300, context_words=0, passage_words=words)
    assert [example for part in parts for example in read(part.document)] == read(Document(text))
    assert (len(parts) > 5) == (words < 10_000)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("words", [3, 1000])
def test_the_parts_of_a_text_have_the_neighbour_sentences_of_the_whole(
    words: int, count: int
) -> None:
    text = "\n\n".join(sentences(30)) + "   "

    def read(document: Document) -> list[Example]:
        return examples_of(document, context_words=words, neighbour_sentences=count)

    parts = split_text(text, max_chars=300, context_words=words, neighbour_sentences=count)
    assert [example for part in parts for example in read(part.document)] == read(Document(text))
    assert len(parts) > 5


def test_a_long_text_is_processed_in_parts_with_the_same_entities() -> None:
    text = " ".join(sentences(60))
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> None:
        assert await found(client, text=text) == [entity_dicts(permissive_recognizer()(text))]

    with_client(scenario, recognizer, part_chars=200, max_batch_chars=600)
    assert len(recognizer.batches) > 3
    assert all(sum(map(len, batch)) < 600 + 400 for batch in recognizer.batches)


def test_a_long_text_of_white_space_has_no_entities() -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        assert await found(client, texts=[" " * 5000, "\n" * 5000]) == [[], []]

    with_client(scenario)


def test_a_short_text_overtakes_a_long_one() -> None:
    long, short = " ".join(sentences(200)), "A short one."
    recognizer = RecordingRecognizer()
    recognizer.free.clear()

    async def scenario(client: httpx.AsyncClient) -> None:
        first = asyncio.create_task(found(client, text=long))
        await until(recognizer.busy.is_set)
        second = asyncio.create_task(found(client, text=short))
        await asyncio.sleep(0.05)
        recognizer.free.set()
        await second
        assert not first.done()
        await first

    with_client(scenario, recognizer, part_chars=200, max_batch_chars=400)
    turn = next(i for i, batch in enumerate(recognizer.batches) if short in batch)
    assert turn <= 2 < len(recognizer.batches) / 4


def test_concurrent_requests_share_a_batch_and_get_their_own_results() -> None:
    texts = sentences(64)
    expected = [entity_dicts(permissive_recognizer()(text)) for text in texts]
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> str:
        responses = await asyncio.gather(*(found(client, text=text) for text in texts))
        assert responses == [[entities] for entities in expected]
        return (await client.get("/metrics")).text

    exposition = with_client(scenario, recognizer)
    assert len(recognizer.batches) < 16
    assert recognizer.threads == {"spandet-model_0"}
    assert sorted(recognizer.seen) == sorted(texts)
    assert metric(exposition, "spandet_texts_total") == 64
    assert metric(exposition, "spandet_batch_texts_count") == len(recognizer.batches)
    assert metric(exposition, "spandet_characters_total") == sum(map(len, texts))
    assert metric(exposition, "spandet_queue_texts") == 0
    assert 'spandet_requests_total{path="/v1/entities",status="200"} 64.0' in exposition


def test_without_batching_every_batch_has_one_text() -> None:
    recognizer = RecordingRecognizer()

    async def scenario(client: httpx.AsyncClient) -> None:
        await found(client, texts=sentences(5))

    with_client(scenario, recognizer, max_batch_texts=1)
    assert [len(batch) for batch in recognizer.batches] == [1] * 5


def test_requests_with_different_options_get_their_own_results() -> None:
    texts = sentences(12)
    scores = [None, 0.1, 0.9]

    async def scenario(client: httpx.AsyncClient) -> None:
        async def one(text: str, score: float | None) -> list[Any]:
            options = {} if score is None else {"min_score": score}
            return await found(client, text=text, **options)

        pairs = [(text, scores[i % 3]) for i, text in enumerate(texts)]
        responses = await asyncio.gather(*(one(*pair) for pair in pairs))
        for (text, score), response in zip(pairs, responses, strict=True):
            assert response == [entity_dicts(permissive_recognizer()(text, min_score=score))]

    with_client(scenario)


@pytest.mark.parametrize(
    "text",
    ["NUL \0 in IL-2", "a lone \ud800 surrogate", "\udfff", "خلية T في الدم", "🧬 IL-2", "\ufeffx"],
)
def test_unusual_characters_are_returned_unchanged(text: str) -> None:
    async def scenario(client: httpx.AsyncClient) -> None:
        content = json.dumps({"text": text, "min_score": 0.0}).encode("ascii")
        headers = {"Content-Type": "application/json"}
        response = await client.post("/v1/entities", content=content, headers=headers)
        assert response.status_code == 200
        (document,) = json.loads(response.content)["documents"]
        assert document["entities"] == entity_dicts(permissive_recognizer()(text, min_score=0.0))
        for entity in document["entities"]:
            assert entity["text"] == text[entity["start"] : entity["end"]]
        traced = await client.post(
            "/v1/trace", content=json.dumps({"text": text}).encode("ascii"), headers=headers
        )
        assert json.loads(traced.content)["text"] == text

    with_client(scenario)


def test_a_trace_equals_the_trace_of_the_document() -> None:
    text = " ".join(sentences(8))

    async def scenario(client: httpx.AsyncClient) -> None:
        response = await client.post("/v1/trace", json={"text": text})
        assert response.json() == trace(permissive_recognizer(), Document(text)).to_json()
        sentence = response.json()["sentences"][2]
        for start, word in zip(sentence["char_starts"], sentence["words"], strict=True):
            assert text[start:].startswith(word)
        assert sentence["found"][0]["steps"]
        highest = await client.post("/v1/trace", json={"text": text, "min_score": 1.0})
        assert not any(sentence["found"] for sentence in highest.json()["sentences"])

    with_client(scenario, part_chars=100)


def test_an_ensemble_is_served_and_cannot_be_traced() -> None:
    text = " ".join(sentences(20))
    members = (permissive_recognizer(), random_recognizer("span-jury", labels=("place", "person")))
    named = zip(members, ("a", "b"), strict=True)
    ensemble = Ensemble([Member(one, MemberRecord(Path(name), name)) for one, name in named])
    expected = [entity_dicts(ensemble(text))]

    async def scenario(client: httpx.AsyncClient) -> None:
        assert await found(client, text=text) == expected
        response = await client.post("/v1/trace", json={"text": text})
        assert response.status_code == 422
        assert "an ensemble, which cannot be traced" in response.json()["detail"]
        model = (await client.get("/v1/model")).json()
        assert model["detector"].endswith("span-jury")

    with_client(scenario, ensemble, part_chars=200)


SIZES = [(0, 0, 0), (7, 0, 0), (1000, 0, 0), (0, 30, 0), (0, 45, 0), (100, 0, 1), (100, 0, 3)]


@pytest.mark.parametrize(("one", "other"), [(a, b) for a in SIZES for b in SIZES if a < b])
def test_the_parts_of_a_text_have_the_context_of_every_member(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    text = "\n\n".join(sentences(30)) + "   "
    sizes = [
        ContextSizes(context_words=words, passage_words=passage, neighbour_sentences=neighbours)
        for words, passage, neighbours in (one, other)
    ]
    parts = split_text(text, max_chars=300, **enough_context(sizes))
    for own in sizes:
        read = [example for part in parts for example in examples_of(part.document, **own)]
        assert read == examples_of(Document(text), **own)
    assert len(parts) > 5 or {30, 45} == {one[1], other[1]}

"""spandet benchmark speed MODEL DATA: what a detector adds to its encoder in prediction."""

from __future__ import annotations

from pathlib import Path

from spandet.cli.benchmark_options import Batch, Data, Lengths, Rounds, Threads, Timed
from spandet.cli.options import FromFormat, Html, Json, Markdown, Model, Set
from spandet.cli.terminal import protect, show
from spandet.formats import read


def speed_command(
    model: Model,
    data: Data,
    set_: Set = None,
    from_: FromFormat = None,
    json_: Json = False,
    markdown: Markdown = False,
    html: Html = None,
    timed: Timed = 200,
    batch: Batch = 8,
    rounds: Rounds = 4,
    threads: Threads = 1,
    lengths: Lengths = None,
) -> None:
    """Time the bare encoder and the whole detector on the same batches, and `predict`."""
    corpus = read(data, from_)
    protect([corpus], html)
    # torch takes seconds to load: mistakes in what to read come first.
    from spandet.benchmarking import clock, inference
    from spandet.benchmarking.cost import costs_by_length
    from spandet.benchmarking.cost_sheet import CostSheet
    from spandet.benchmarking.lengths import parse_lengths, prediction_by_length
    from spandet.inference.recognizer import Recognizer
    from spandet.training.data import load
    from spandet.training.progress import Screen

    timing = clock.Timing(sentences=timed, batch=batch, rounds=rounds, threads=threads)
    words = parse_lengths(lengths) if lengths else []
    split, recognizer = load(corpus), Recognizer.from_pretrained(model, set_ or ())
    with clock.threads(threads), Screen() as screen:
        contest = inference.Inference(recognizer, split.documents)
        costs = costs_by_length(contest, timing, screen)
        pace = inference.predict_pace(recognizer, split.documents, timing)
        alone = list(prediction_by_length(recognizer, split.documents, words, timing))
    sheet = CostSheet(
        what="prediction",
        of=Path(model).resolve().name,
        data=split,
        timing=timing,
        batch=f"{batch} sentences",
        encoder=inference.bare_name(recognizer.encoder),
        costs=costs,
        predict=pace,
        lengths=alone,
    )
    show(sheet, json_=json_, markdown=markdown, html=html)

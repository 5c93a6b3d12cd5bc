"""A spaCy pipeline in several processes gives the same docs as in one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.small_models import small_model, small_texts

CODE = """
import json, sys
import spacy, torch

torch.set_num_threads(1)
model, texts = sys.argv[1], json.loads(sys.argv[2])
nlp = spacy.blank("en")
nlp.add_pipe("spandet", config={"model": model})
found = [
    [
        (list(doc._.spandet["spandet"]), [(s.start, s.end, s.label_) for s in doc.spans["spandet"]])
        for doc in nlp.pipe(texts, n_process=processes, batch_size=2)
    ]
    for processes in (1, 2)
]
print(json.dumps(found))
"""


def test_two_processes_give_the_same_as_one() -> None:
    model: Path = small_model("locate-and-label")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(model), json.dumps(small_texts(6))],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    one, two = json.loads(done.stdout)
    assert two == one
    assert sum(len(spans) for _, spans in one) > 6

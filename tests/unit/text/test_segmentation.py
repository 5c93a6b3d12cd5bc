from __future__ import annotations

import time
from itertools import pairwise

import pytest

from spandet.text.segmentation import segment
from spandet.text.words import split_words

CASES = {
    "stops": [
        "He slept. ‖She read.",
        "Where is it? ‖On the table!",
        "Is it so?! ‖Yes, it is.",
        "Really?? ‖Yes!!! ‖Great.",
        "Yahoo! is a firm. ‖So is eBay.",
        "¿Dónde está? ‖¡Aquí!",
        "It was good. ‖– Was it?",
        "Three mice died. ‖5 lived.",
        "One . ‖Two .",
    ],
    "abbreviations": [
        "We saw it (e.g. in mice) twice. ‖Nobody believed us.",
        "Some metals, e.g. Zinc and Copper, are trace elements.",
        "The outer layer, i.e. The Crust, is thin.",
        "Dr. Weber met Mrs. Okafor and Prof. Lindqvist. ‖They talked.",
        "It was Smith vs. Jones again, cf. Mr. Brown v. Board.",
        "It weighs approx. 5 kg. ‖Lift with care.",
        "Sgt. Pepper met Gen. Lee and Sen. Smith Jr. in town.",
        "St. Louis is big. ‖Mt. Everest is high.",
        "The U.S. Army bought it. ‖It works.",
        "He moved to the U.S. ‖The move was hard.",
        "She lives in Washington D.C. ‖He lives in Rome.",
        "Acme Inc. sells tools. ‖Acme Ltd. does not.",
        "Acme Inc. Chairman Jo Doe works for Acme Inc. ‖She is old.",
        "He has a Ph.D. in physics. ‖She has none.",
        "It starts at 5 p.m. on Monday, or at 6 p.m. ‖We leave at seven.",
        "Apples, pears, etc. were cheap. ‖We had figs, etc. ‖Nuts were not.",
        "Risk was high in CF. ‖Doses rose.",
    ],
    "numbers": [
        "See No. 5 and No. 12 for details.",
        "Did he say no? ‖No. ‖He said yes.",
        "The value was 3.14 on day 2. ‖It rose to 4.5 later.",
        "Costs fell by 1.5 % in 2019. ‖Sales rose.",
        "See Fig. 2 and Figs. 3 and 4. ‖Data are in Fig. S1. ‖Bars show means.",
        "As in Eq. 3, the sum is zero (cf. Sec. 4.2).",
        "Pages 3-7, pp. 12 and p. 15 are lost. ‖Vol. 2 is here.",
        "In Jan. 2020 it rained. ‖On Feb. 3 it stopped.",
        "1. Install it. ‖2. Run it.",
        "It was measured (see ref. 12). ‖[Note added later.]",
    ],
    "initials": [
        "J. R. R. Tolkien wrote it. ‖C. S. Lewis read it.",
        "John F. Kennedy spoke. ‖A letter by H. A. Meyer and A. B. Cole came.",
        "Il est venu. ‖M. Dupont est parti.",
        "Она живет в г. Москва. ‖Он ушел в 5 ч. вечера.",
    ],
    "science": [
        "Lee et al. (1999) found it. ‖We did not.",
        "This was shown by Lee et al. ‖However, we disagree.",
        "It was done as by Lee et al. ‖RESULTS: It worked.",
        "The p53 protein binds DNA. ‖p53 mutants do not. ‖c-fos was not changed.",
        "Levels rose. ‖mRNA was stable. ‖bcl-2 was lost. ‖alpha 4 was not.",
        "We used NF-kappa B. ‖Inhibition was clear.",
        "They lack vitamin C. ‖Treatment took 24 h. ‖Doses of 5 mmol/L. ‖Cells died.",
        "S. aureus and E. coli were grown for 2 h. ‖Then they died.",
        "Temp. was 37 °C (n = 3; cf. Fig. 1A). ‖Results vary.",
        "It binds (Poe, J. Cell. Res. 65, 1991). ‖We agree.",
        "It was seen in mice.[3] ‖Rats differ.[4, 5] ‖Why?",
    ],
    "German": [
        "Der Zug kam am 3. Mai an. ‖Er war voll.",
        "Der 2. Weltkrieg endete 1945. ‖Danach begann der Wiederaufbau.",
        "Im 19. Jahrhundert und im frühen 20. Jahrhundert wuchs die Stadt.",
        "Das gilt z. B. für Hunde, z.B. Möpse, d.h. nicht für Katzen. ‖Punkt.",
        "Die Fa. Krause liefert ca. 20 Mio. Stück bzw. mehr. ‖Das reicht.",
        "Die Hauptstr. 5 liegt neben der St. Annen Kirche.",
    ],
    "quotes and brackets": [
        "He said “Go home.” ‖She went.",
        '"Really?" he asked. ‖"Yes," she said.',
        '"Stop." ‖"Why?"',
        "He left (it was late.) ‖We stayed.",
        "(He left. ‖She stayed.) ‖We slept.",
        "'It works!' ‖They cheered. ‖‘Good,’ he said.",
        "Er rief: »Komm!« ‖Sie kam. ‖Er rief: „Geh!“ ‖Sie ging.",
        "An open bracket ( is a slip. ‖It ends here. ‖So does this.",
    ],
    "ellipses and addresses": [
        "Wait ... there is more. ‖Well... that is odd… I see.",
        "It went on and on... ‖Nobody cared.",
        "Visit https://example.org/a.b?c=d. ‖Then call us.",
        "Write to jo.doe@example.org. ‖We answer, e.g. on .NET forums.",
        "Hello 😀! ‖How are you?😀 ‖Fine.",
    ],
    "forgotten spaces": [
        "It ended badly.‖Then it got worse.‖What?‖You did?",
        "It needs IL-2.‖The rest of NM23.H1 and helpX?ed stay.",
    ],
    "other scripts": [
        "他来了。‖我走了！‖真的吗？‖是的。",
        "彼は来た。‖「本当？」と言った。",
        "「行きます。」‖彼は言った。‖「はい。」と答えた。",
        "यह घर है। ‖वह पेड़ है।‖बस।",
        "هل هذا صحيح؟ ‖نعم، هذا صحيح.",
        "그는 왔다. ‖나는 갔다.",
    ],
    "lines": [
        "First paragraph without stop\n\n‖Second paragraph. ‖Here it goes on.",
        "One\r\n\r\n‖two\r\r‖three",
        "One\n \t\n‖two\u2029‖three",
        "A wrapped line that goes on\nin the next or with the\nName of a town. ‖The end.",
        "One line.\r\n‖Two lines\r\nthat go on.",
        "Methods\n‖Cells were grown in a medium that was rich in sugar.",
        "2 Results\n‖Cells grew in this medium much faster than\nJurkat cells did before.",
        "Ein Satz, der lang genug ist und dann mit\nGroßem Wort weitergeht.",
    ],
}
"""A "‖" stands before each new sentence."""


def _show(text: str) -> str:
    sentences = segment(text)
    borders = [0, *(sentence.starts[0] for sentence in sentences[1:]), len(text)]
    return "‖".join(text[a:b] for a, b in pairwise(borders))


@pytest.mark.parametrize(
    "wanted", [pytest.param(text, id=kind) for kind, texts in CASES.items() for text in texts]
)
def test_sentences_are_split_as_shown(wanted: str) -> None:
    assert _show(wanted.replace("‖", "")) == wanted


def test_sentences_carry_their_words_and_offsets() -> None:
    text = "\n IL-2 rose.\r\nWhy? "
    first, second = segment(text)
    assert (first.words, first.starts) == (("IL-2", "rose", "."), (2, 7, 11))
    assert (second.words, second.starts) == (("Why", "?"), (14, 17))


def test_text_without_words_has_no_sentences() -> None:
    assert segment("") == segment(" \r\n\n\x1c ") == ()


def test_broken_unicode_and_controls_are_only_words() -> None:
    assert _show("Bad \ud800 one. Next \udc00 here. A\0b.") == (
        "Bad \ud800 one. ‖Next \udc00 here. ‖A\0b."
    )


def test_a_very_long_bracket_may_contain_several_sentences() -> None:
    assert len(segment("We ( saw it. " + "They saw it. " * 5 + ") It ended.")) == 1
    assert len(segment("We ( saw it. " + "They saw it. " * 30 + ") It ended.")) == 31


NASTY = [
    *[(pattern, 1_000_000) for pattern in ("word ", "a")],
    *[
        (pattern, 100_000)
        for pattern in (
            "(",
            "()",
            ". ",
            "a\n",
            "A\n\n",
            "a\n\x1c\n",
            "\r\n ",
            '."',
            ". (",
            "?[1]",
            "J. ",
            "vs. ",
            "U.S. The ",
            "。」",
            "!👍",
            "(" * 30 + "a. B" + ")" * 30,
        )
    ],
]


@pytest.mark.parametrize(("pattern", "length"), NASTY)
def test_time_is_linear(pattern: str, length: int) -> None:
    text = (pattern * (length // len(pattern) + 1))[:length]
    began = time.process_time()
    sentences = segment(text)
    assert time.process_time() - began < 10  # quadratic time would be hours
    assert sum(map(len, sentences)) == len(split_words(text))


def test_a_text_without_stops_stays_one_sentence() -> None:
    assert len(segment("word " * 100_000)) == 1

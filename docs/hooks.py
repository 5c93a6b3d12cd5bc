"""Hooks of mkdocs: reference pages from the code, formulas as MathML, and a check of all pages.

MathML is displayed by browsers without a script.
"""

import html
import re
import subprocess
import sys
from typing import get_args

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import spandet
from spandet.config import Settings
from spandet.detectors import DETECTORS
from spandet.encoding import EncoderSettings
from spandet.inference.decoding import DecodingSettings
from spandet.training.recipe import TrainingSettings

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_LOADED_FROM_ELSEWHERE = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^\"'\s>]+"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference pages, which are generated in each build."""
    pages = {"python": _python(), "settings": _settings(), "command-line": _command_line()}
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_content(content: str, **_: object) -> str:
    """Replace formulas by MathML."""
    return _FORMULA.sub(_mathml, content)


def on_post_page(output: str, *, page: Page, **_: object) -> str:
    """Refuse a page that would load something from another host: the site works offline."""
    found = _LOADED_FROM_ELSEWHERE.search(output)
    if found is not None:
        raise PluginError(f"{page.file.src_uri}: {found[0]!r} is loaded from another host")
    return output


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return str(convert(html.unescape(found[2]), display=display))


def _python() -> str:
    names = "\n".join(f"::: spandet.{name}\n" for name in sorted(spandet.__all__))
    return f"# Python\n\nThe public names of `spandet`.\n\n{names}\n::: spandet.errors\n"


def _settings() -> str:
    lines = ["# Settings", "", "What the sections of a recipe may contain.", ""]
    for section, classes in _settings_classes().items():
        lines += [f"## {section}", ""]
        for each in classes:
            name = f"{each.__module__}.{each.__qualname__}"
            lines += [f"::: {name}", "    options:", "      heading_level: 3", ""]
    return "\n".join(lines)


def _settings_classes() -> dict[str, list[type[Settings]]]:
    """The settings classes of a recipe by section, from the tables of parts and detectors."""
    annotations = [field.annotation for field in EncoderSettings.model_fields.values()]
    kinds = [kind for each in annotations for kind in (each, *get_args(each))]
    parts = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Settings)]
    return {
        "Encoder": [EncoderSettings, *parts],
        "Detectors": [row.settings for row in DETECTORS.values()],
        "Decoding": [DecodingSettings],
        "Training": [TrainingSettings],
    }


def _command_line() -> str:
    command = [sys.executable, "-m", "typer", "spandet.cli", "utils", "docs", "--name", "spandet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.replace("# `spandet`", "# Command line", 1)

"""Arguments that several commands share, and options generated from a class of settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import typer
from annotated_types import Ge

from spandet.inference.options import PredictOptions

Input = Annotated[str, typer.Argument(help="A file, a folder, or - for standard input.")]
FromFormat = Annotated[
    str | None,
    typer.Option("--from", metavar="FORMAT", help="Format of the input (see `spandet formats`)."),
]
PredictedFrom = Annotated[
    str | None,
    typer.Option("--predicted-from", metavar="FORMAT", help="Format of the predictions."),
]
ToFormat = Annotated[
    str | None, typer.Option("--to", metavar="FORMAT", help="Format of the output.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Skip bad records; count and list them at the end.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write a self-contained HTML page.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random generator.")]
Gold = Annotated[str, typer.Argument(help="Gold annotations: a file or a folder.")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A model: its folder, name or hub id; a+b: an ensemble of models."
    ),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="Device to compute on: cpu (the default), cuda, mps, auto …"),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="section.key=value", help="Change a setting of the model; repeatable."
    ),
]


def takes(
    settings: type[PredictOptions], *names: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one option per field of a class, in place of its parameter `options`.

    The command gets an object of the class, once its values are validated.

    Args:
        settings: The class.
        *names: Only these fields; all by default.
    """
    fields = names or tuple(settings.model_fields)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_options(**values: Any) -> None:
            own = {name: values.pop(name) for name in fields}
            given = {name: value for name, value in own.items() if value is not None}
            command(options=settings.of(**given), **values)

        signature = inspect.signature(command, eval_str=True)
        made = [_parameter(settings, name) for name in fields]
        others = [one for one in signature.parameters.values() if one.name != "options"]
        place = list(signature.parameters).index("options")
        vars(with_options)["__signature__"] = signature.replace(
            parameters=[*others[:place], *made, *others[place:]]
        )
        return with_options

    return decorate


def _parameter(settings: type[PredictOptions], name: str) -> inspect.Parameter:
    """The option for a field: `--min-score SCORE`, and `--label LABEL` for a field `labels`."""
    field, kind = settings.model_fields[name], get_type_hints(settings)[name]
    kinds = [one for one in get_args(kind) if one is not type(None)]
    plain = kinds[0] if type(None) in get_args(kind) else kind
    is_list = get_origin(plain) is tuple
    word = name.removesuffix("s") if is_list else name
    option = typer.Option(
        f"--{word.replace('_', '-')}",
        metavar=None if plain is bool else word.rpartition("_")[2].upper(),
        min=next((cast("int", b.ge) for b in field.metadata if isinstance(b, Ge)), None),
        help=f"{field.description}{' Repeatable.' if is_list else ''}",
    )
    accepted = list[get_args(plain)[0]] | None if is_list else kind  # type: ignore[misc]
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[accepted, option],
    )

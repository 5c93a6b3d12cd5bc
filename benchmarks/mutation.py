"""Mutation testing: python benchmarks/mutation.py [MODULE...] --sample 50

Changes one thing at a time in a sample of places (comparisons, arithmetic, and/or, constants,
min/max, return values, statements) and runs the tests of that module. A mutant is killed if a test
fails, and survives if none does: a test is missing, or the change makes no difference. Nothing is
written to the tree: each mutant lives in a fork of this process, which has loaded torch already.
"""

import argparse
import ast
import copy
import difflib
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
DEFAULT = ["spans", "inference/decoding.py", "evaluation", "training/batches.py"]
MOST_MEMORY = 8 * 2**30
PRELOADED = ("torch", "scipy.optimize", "transformers", "pydantic", "rich.console", "beartype")

OPERATORS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
}  # fmt: skip
OPPOSITES = {"min": "max", "minimum": "maximum", "amin": "amax", "all": "any"}
OPPOSITES |= {value: key for key, value in OPPOSITES.items()}


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    path: Path
    line: int
    source: bytes
    diff: str


def with_(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    vars(changed).update(fields)
    return changed


def changes(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901 (a table)
    """The possible replacements of a node."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            yield with_(node, ops=[OPERATORS[type(op)]()])
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield with_(node, op=OPERATORS[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield with_(node, value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (with_(node, value=value + step) for step in (1, -1))
        case ast.Name(id=name) if name in OPPOSITES:
            yield with_(node, id=OPPOSITES[name])
        case ast.Attribute(attr=name) if name in OPPOSITES:
            yield with_(node, attr=OPPOSITES[name])
        case ast.Return(value=ast.AST()):
            yield with_(node, value=None)
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.Pass()


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, Callable[[ast.AST], None]]]:
    """All executed nodes in source order, without types, and how to replace each."""
    for field, value in ast.iter_fields(tree):
        if field in {"annotation", "returns", "decorator_list", "bases"}:
            continue
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, ast.AST):
                if isinstance(value, list):
                    yield item, partial(value.__setitem__, index)
                else:
                    yield item, partial(setattr, tree, field)
                yield from places(item)


def mutant(path: Path, place: int, change: int) -> Mutant:
    tree = ast.parse(path.read_text("utf-8"))
    before = ast.unparse(tree).splitlines()
    node, put = list(places(tree))[place]
    put(list(changes(node))[change])
    after = ast.unparse(tree)
    diff = list(difflib.unified_diff(before, after.splitlines(), lineterm="", n=1))[3:]
    return Mutant(path, getattr(node, "lineno", 0), after.encode(), "\n".join(diff))


def tests_of(path: Path) -> list[str]:
    """The tests of a module's area, and those that import it by name; quick ones first."""
    below = path.relative_to(PROJECT / "src/spandet").with_suffix("").parts
    tests, name = PROJECT / "tests", ".".join(("spandet", *below))
    area = [*tests.glob(f"unit/**/test_{below[-1]}.py"), tests / "unit" / below[0]]
    area += sorted(tests.glob(f"properties/test_{below[0]}_*.py"))
    every = sorted([*tests.glob("unit/**/test_*.py"), *tests.glob("properties/test_*.py")])
    found = [file for file in area if file.exists()]
    others = [file for file in every if not any(file.is_relative_to(one) for one in found)]
    found += [file for file in others if f"from {name} import" in file.read_text("utf-8")]
    return [str(file.relative_to(PROJECT)) for file in found]


def run_tests(path: Path, source: bytes) -> None:
    """In a forked process: run the tests of a module with a changed source; never returns."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    get_code = SourceFileLoader.get_code  # also of jaxtyping's loader

    def changed_code(self: SourceFileLoader, name: str) -> object:
        if Path(self.path) == path:
            return self.source_to_code(source, self.path)
        return get_code(self, name)

    SourceFileLoader.get_code = changed_code
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutation"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = 1
    try:
        code = int(import_module("pytest").main([*options, *tests_of(path)]))
    finally:
        os._exit(code)


def run_all(jobs: list[tuple[Path, bytes, float]], workers: int) -> list[tuple[str, float]]:
    """The outcome (killed, survived, timed out) and the seconds of each job."""
    ends: dict[int, tuple[str, float]] = {}
    running: dict[int, tuple[int, float]] = {}
    waiting = list(enumerate(jobs))[::-1]
    while waiting or running:
        while waiting and len(running) < workers:
            index, (path, source, _) = waiting.pop()
            pid = os.fork() or run_tests(path, source)
            running[pid] = (index, time.monotonic())
        time.sleep(0.05)
        for pid, (index, start) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            seconds, end = time.monotonic() - start, "killed" if status else "survived"
            if not done and seconds > jobs[index][2]:
                os.killpg(pid, signal.SIGKILL)
                done, end = os.waitpid(pid, 0)[0], "timed out"
            if done:
                del running[pid]
                ends[index] = (end, seconds)
    return [ends[index] for index in range(len(jobs))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=DEFAULT, help="below src/spandet")
    parser.add_argument("--sample", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, choices=(1, 2))
    options = parser.parse_args()
    os.chdir(PROJECT)
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.path.insert(0, str(PROJECT / "src"))
    hypothesis = import_module("hypothesis")
    plain = {"deadline": None, "database": None, "derandomize": True}
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # no shrinking
    hypothesis.settings.register_profile("mutation", phases=phases, **plain)
    for name in PRELOADED:
        import_module(name)
    roots = [PROJECT / "src/spandet" / name for name in options.modules]
    if missing := [str(root) for root in roots if not root.exists()]:
        parser.error(f"no such file or folder: {', '.join(missing)}")
    paths = [file for root in roots for file in (sorted(root.rglob("*.py")) or [root])]
    everything = [
        (path, place, change)
        for path in paths
        for place, (node, _) in enumerate(places(ast.parse(path.read_text("utf-8"))))
        for change, _ in enumerate(changes(node))
    ]
    count = min(options.sample, len(everything))
    drawn = random.Random(options.seed).sample(everything, count)  # noqa: S311
    sample = [mutant(*site) for site in drawn]
    touched = sorted({one.path for one in sample})
    print(f"{count} of {len(everything)} mutants; first the tests without any change")
    first = {tuple(tests_of(path)): path for path in touched}  # one run per set of tests
    same = [(path, ast.unparse(ast.parse(path.read_text("utf-8")))) for path in first.values()]
    ends = run_all([(path, text.encode(), 900.0) for path, text in same], options.workers)
    limits = {tests: 20 + 3 * seconds for tests, (_, seconds) in zip(first, ends, strict=True)}
    for tests, (end, _) in zip(first, ends, strict=True):
        if end != "survived":
            sys.exit(f"these tests fail without any change: {' '.join(tests)}")
    start = time.monotonic()
    jobs = [(one.path, one.source, limits[tuple(tests_of(one.path))]) for one in sample]
    ends = run_all(jobs, options.workers)
    for one, (end, seconds) in zip(sample, ends, strict=True):
        print(f"{end:9} {seconds:6.1f} s  {one.path.relative_to(PROJECT)}:{one.line}")
        if end != "killed":
            print(one.diff)
    counts = Counter(end for end, _ in ends)
    print(", ".join(f"{counts[end]} {end}" for end in ("killed", "survived", "timed out")))
    print(f"{(time.monotonic() - start) / max(count, 1):.1f} s per mutant")


if __name__ == "__main__":
    main()

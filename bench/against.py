"""`make bench BASE=commit`: our own rows, of the working tree and of another commit, in turns within one run.

The other commit lies in a `git worktree` under `bench/.cache`; its server runs under the same interpreter with its own
sources. A server of it that does not start is reported in each of its rows.
"""

import statistics
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench import repository, servers
from bench.cost import LARGE, WARM_SECONDS, Variant, variants
from bench.servers import ROOT, Server


@dataclass
class Pair:
    """A row of both trees: CPU-microseconds of each round, or why the base has none."""

    name: str
    here: list[float] = field(default_factory=list)
    base: list[float] = field(default_factory=list)
    failure: str = ""

    def line(self) -> str:
        """Say the medians, the median of the rounds' ratios, and the least and the greatest of them."""
        if self.failure:
            return f"{self.name}: no figure of the base: {self.failure}"
        ratios = [a / b for a, b in zip(self.here, self.base, strict=True)]
        here, base = statistics.median(self.here), statistics.median(self.base)
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        return f"{self.name}: {here:.1f} us here, {base:.1f} at the base, {statistics.median(ratios):.3f} ({spread})"


def measure(commit: str, rounds: int, seconds: float, match: str = "") -> list[Pair]:
    """Measure every row of our own server that has `match` in its name; who goes first changes with each round."""
    tree = worktree(commit)
    rows = [variant for variant in variants() if match in variant.row.name]
    pairs = [Pair(variant.row.name) for variant in rows]
    for number in range(rounds):
        with ExitStack() as stack:
            here, base = _servers(stack, ROOT), _servers(stack, tree)
            for variant, pair in zip(rows, pairs, strict=True):
                _measure_pair(pair, variant, (here[variant.profile], base[variant.profile]), number, seconds)
    return pairs


def worktree(commit: str) -> Path:
    """Check the commit out in a worktree of its own, once."""
    found = subprocess.run(
        ["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], cwd=ROOT, capture_output=True, text=True
    )
    if found.returncode:
        raise SystemExit(f"BASE={commit} is no commit of this repository: {found.stderr.strip()}")
    tree = repository.CACHE / f"base-{found.stdout[:12]}"
    if not tree.exists():
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
        subprocess.run(
            ["git", "worktree", "add", "--detach", str(tree), found.stdout.strip()], cwd=ROOT, check=True
        )
    return tree


def _servers(stack: ExitStack, tree: Path) -> dict[str, Server | str]:
    """Start a server per profile; one that did not come up is the last line of what it printed."""
    folders = {"native": repository.make(), **{name: (at,) for name, at in repository.make_foreign().items()}}
    found: dict[str, Server | str] = {}
    for profile, paths in folders.items():
        try:
            found[profile] = stack.enter_context(servers.trivium(*paths, profile=profile, tree=tree))
        except RuntimeError as error:
            found[profile] = str(error).strip().splitlines()[-1]
    return found


def _measure_pair(
    pair: Pair, variant: Variant, places: tuple[Server | str, Server | str], number: int, seconds: float
) -> None:
    here, base = places
    if isinstance(here, str):
        raise RuntimeError(f"the working tree's own server did not start: {here}")
    if isinstance(base, str):
        pair.failure = base
        return
    turns = [(here, pair.here), (base, pair.base)]
    for server, figures in turns if number % 2 == 0 else reversed(turns):
        variant.load(server, WARM_SECONDS)
        length = seconds if variant.row.floor == "F" else seconds * LARGE
        figures.append(variant.load(server, length).cpu_us)

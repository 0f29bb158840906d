"""`make bench`: everything, written to `docs/benchmarks`. `--rounds` and `--seconds` for a quick look.

A run of the usual length joins the list of all runs in `bench/lab`, whatever it shows.
"""

import click
from bench import against, cost, neighbour, queueing, report, repository
from bench.lab import runs


@click.command()
@click.option("--rounds", default=cost.ROUNDS, type=click.IntRange(min=1), show_default=True)
@click.option(
    "--seconds",
    default=cost.SECONDS,
    type=click.FloatRange(min=2),  # half of them for a floor, and wrk knows whole ones alone
    show_default=True,
    help="of load per variant and round; four times as many for a large model",
)
@click.option(
    "--only", type=click.Choice(["cost", "waits", "neighbour"]), help="print one part, write no table"
)
@click.option(
    "--base", metavar="COMMIT", help="compare our own rows with those of this commit, write no table"
)
@click.option("--match", default="", help="with --base: only rows with this in their names")
def main(rounds: int, seconds: float, only: str | None, base: str | None, match: str) -> None:
    """Measure and report."""
    if base:
        for pair in against.measure(base, rounds, seconds, match):
            print(pair.line())
        return
    hour = runs.now()  # before, since what is committed meanwhile was not measured
    rows = cost.measure(rounds, seconds) if only in (None, "cost") else []
    if rows and (rounds, seconds) == (cost.ROUNDS, cost.SECONDS):
        runs.add(rows, hour)
    waits = queueing.measure() if only in (None, "waits") else []
    beside = neighbour.Neighbour([], [])
    if only in (None, "neighbour"):
        beside = neighbour.measure(*repository.make(), rounds)
    if only:
        for row in rows:
            pairs = zip(row.cpu_us, row.floor_us, strict=True)
            by_round = " ".join(f"{cost_us:.1f}/{floor_us:.1f}" for cost_us, floor_us in pairs)
            print(f"{row.name}: {row.ratio:.3f} (limit {row.limit}); round by round {by_round}")
        if rows:
            print("\n".join(report.beside([*cost.beside_tritonserver(rows), *cost.beside_v2(rows)])))
        for wait in waits:
            print(
                f"{wait.model} at {wait.load:.0%}: {wait.error:.1%} live {wait.live} virtual {wait.virtual}"
            )
        if beside.alone_us:
            print(f"neighbour: {beside.ratio:.2f} alone {beside.alone_us} beside {beside.beside_us}")
        return
    print(report.write(rows, waits, beside, hour))
    print("\n".join(report.beside([*cost.beside_tritonserver(rows), *cost.beside_v2(rows)])))


if __name__ == "__main__":
    main()

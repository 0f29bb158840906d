"""`python -m tests.fuzz --target NAME|all --seed S [--index I | --begin B --count N]`: the fuzzer by hand.

With `--index` one input is shown and tried, and what it raises is shown whole. Without, inputs are tried; faults of one
kind are told once, and the run goes on behind them. With `--atheris` that library chooses the inputs.
"""

import argparse
import sys
import time
import traceback

MOST_KINDS = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Try damaged input on the readers."
    )
    parser.add_argument("--target", required=True, help="the name of a target, or all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--index", type=int, help="one input alone, shown with what becomes of it")
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--atheris", action="store_true", help="guided by coverage; needs that library")
    given = parser.parse_args()
    if given.atheris:
        from tests.fuzz.guided import fuzz  # before anything that it wants to instrument is imported

        return fuzz(given.target, given.count)
    from tests.fuzz.targets import TARGETS

    names = list(TARGETS) if given.target == "all" else [given.target]
    if unknown := set(names) - TARGETS.keys():
        parser.error(f"there is no target {unknown.pop()!r}; there are all, {', '.join(TARGETS)}")
    if given.index is not None:
        return show(names[0], given.seed, given.index)
    return max(explore(name, given.seed, given.begin, given.count) for name in names)


def show(name: str, seed: int, index: int) -> int:
    """Try one input, without an alarm, so that a debugger can be attached."""
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    data, chance = target.input(seed, index)
    print(f"{len(data)} bytes: {data.hex()}")
    began = time.process_time()
    try:
        target.read(data, chance)
        outcome, code = "was read", 0
    except target.refusals as error:
        outcome, code = f"was refused: {error!r}"[:1000], 0
    except Exception:
        traceback.print_exc()
        outcome, code = "failed", 1
    print(f"It {outcome}, in {time.process_time() - began:.3f} s of processor time.")
    return code


def explore(name: str, seed: int, begin: int, count: int) -> int:
    """Try many, past faults that are known by now."""
    from tests.fuzz.runner import FuzzFailure, run
    from tests.fuzz.targets import TARGETS

    known: set[str] = set()
    end = begin + count
    while begin < end and len(known) < MOST_KINDS:
        try:
            print(run(TARGETS[name], seed, end - begin, begin), flush=True)
            break
        except FuzzFailure as failure:
            if failure.kind not in known:
                known.add(failure.kind)
                print(failure, flush=True)
            begin = failure.index + 1
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())

"""An hour of mixed traffic with loads, unloads and version changes; writes docs/benchmarks/soak.md and its plot.

`python -m bench.soak [SECONDS]`. Exit status 1 if something was answered wrongly or is not flat.
"""

import sys

from bench.soak import report, story


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else story.HOUR
    told = story.run(seconds)
    print(report.write(told))
    return 0 if told.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

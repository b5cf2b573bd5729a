"""How long loading takes: ``python tests/analysis/loading.py [SAMPLES]``."""

import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "data" / "results" / "v1.ndjson"


def write_journal(path, n):
    """A journal of at least n samples: the stored ones, round after round."""
    lines = [json.loads(line) for line in STORED.read_text().splitlines()]
    once = [line for line in lines if line["kind"] in ("sample", "block")]
    rounds = -(-n // sum(line["kind"] == "sample" for line in once))
    with path.open("w") as file:
        file.write(json.dumps(lines[0]) + "\n")
        for round_ in range(rounds):
            file.writelines(json.dumps(line | {"round": round_}) + "\n" for line in once)


def least_time(work, times=3):
    """CPU seconds of the quickest of several calls."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def parse(path):
    """What any reader has to do at least."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def main():
    sys.path.insert(0, str(ROOT))
    from analysis.load import frame

    n = int(sys.argv[1]) if sys.argv[1:] else 10_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.ndjson"
        write_journal(path, n)
        table = frame(path)
        loading, parsing = least_time(lambda: frame(path)), least_time(lambda: parse(path))
        size = path.stat().st_size / 1e6
        sys.stdout.write(
            f"{len(table)} samples, {size:.1f} MB: {loading:.2f} s, {parsing:.2f} s of it JSON\n"
        )


if __name__ == "__main__":
    main()

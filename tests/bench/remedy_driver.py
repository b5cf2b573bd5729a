"""``bench remedy`` in a process of its own, on the fake worker: new, or resumed.

``python remedy_driver.py FOLDER [resume]``
"""

import sys
from pathlib import Path

from faked import WORKER

from bench.blocks import Settings
from bench.commands import _remedy
from bench.commands._remedy_request import Request
from bench.errors import PagestormError
from bench.mix import Actor, Mix, parse_script
from bench.scenario import Scenario


def request():
    script = parse_script("pass.rest(1000)")
    mix = Mix(
        (
            Actor(
                "chase",
                "scalar",
                "base",
                1,
                1 << 20,
                priority=1,
                script=script,
            ),
            Actor("scan", "scalar", "base", 1, 1 << 20),
        )
    )
    case = Scenario("tiny", mix, ("seeker", "reader"), "seeker")
    settings = Settings(0.01, 0.0, deadline_s=1.0)
    return Request(
        case, "tiny.toml", ("thp",), settings, 180.0, 0.02, 1, ("thp", "mutex"), samples=12
    )


def main():
    folder = Path(sys.argv[1])
    try:
        if sys.argv[2:] == ["resume"]:
            return _remedy.go_on(folder, True, WORKER)
        return _remedy.begin(folder, request(), True, WORKER)
    except PagestormError as error:
        sys.stderr.write(f"error: {error}\n  -> {error.remedy}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

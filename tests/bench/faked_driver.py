"""A driver in a process of its own: runs or resumes a plan of the fake worker in a folder.

``python faked_driver.py FOLDER ROUNDS [resume]``
"""

import sys
from pathlib import Path

from faked import WORKER, pages_plan

from bench.commands._session import Session, open_session
from bench.errors import PagestormError


def main():
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    if sys.argv[3:] == ["resume"]:
        session = open_session(str(folder), as_json=True)
    else:
        session = Session(folder, pages_plan(rounds), as_json=True)
    session.command = WORKER
    try:
        return session.run()
    except PagestormError as error:
        sys.stderr.write(f"error: {error}\n  -> {error.remedy}\n")
        return error.exit_code


sys.exit(main())

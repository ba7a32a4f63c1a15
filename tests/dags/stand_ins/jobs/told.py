"""Jobs that do no work: they read their arguments as the real ones do, note them down, and answer what a test wants.

`$STAND_INS/answers.json` has outcomes by partition, one for each call; the last one holds. `$STAND_INS/calls` has them.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

_FOLDER = Path(os.environ["STAND_INS"])


def note(job: str, **facts: Any) -> int:
    """Notes a call down, and says which call of its kind it is, from 0."""
    calls = _FOLDER / "calls"
    earlier = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
    started_by = os.environ.get("STARTED_BY", "python")
    call = {"job": job, "arguments": sys.argv[1:], "started_by": started_by, **facts}
    with calls.open("a") as file:
        file.write(json.dumps(call) + "\n")
    return sum(one["job"] == job and one.get("partition") == facts.get("partition") for one in earlier)


def outcome_of(partition: str, call: int) -> str:
    outcomes = json.loads((_FOLDER / "answers.json").read_text()).get(partition, ["accept"])
    return str(outcomes[min(call, len(outcomes) - 1)])


def commit_of(key: object) -> str:
    return str(uuid5(NAMESPACE_URL, str(key)))


def answer(result: Path | None, code: int = 0, **facts: Any) -> int:
    """The exit code, once the result is there."""
    assert result is not None
    error = {"message": "The stand-in was told to fail.", "remedy": "None."} if code else None
    result.write_text(json.dumps({"ok": code == 0, "exit_code": code, "error": error, **facts}))
    return code

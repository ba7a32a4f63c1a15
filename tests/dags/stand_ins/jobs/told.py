"""Jobs that do no work: they read their arguments as the real ones do, note them down, and answer what a test wants.

`$STAND_INS/answers.json` has outcomes by partition, one for each call; the last one holds. `$STAND_INS/calls` has them.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

sys.path.append(str(Path(__file__).resolve().parents[4]))

from lakelib.pipeline.arguments import Surroundings
from tests.understood import understood as understood  # as those that stand in read their arguments

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


def table_of(commit: str) -> str | None:
    """That a job has noted down for a commit."""
    calls = (json.loads(line) for line in (_FOLDER / "calls").read_text().splitlines())
    return next((one["table"] for one in calls if one.get("commit") == commit), None)


def server_of(surroundings: Surroundings) -> dict[str, Any]:
    """What the job knows of a Spark Connect server."""
    token = os.environ.get("SPARK_CONNECT_AUTHENTICATE_TOKEN")
    return {"remote": surroundings.remote, "token": token, "conf": dict(surroundings.spark_conf)}


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

"""Who reads changes, makes rows of them and publishes these is killed, beside a writer: what follows is what making it
from scratch would give. The soak goes through many rounds."""

from pathlib import Path

from lakelib import Lake
from tests.soak.following import STEPS, Following


def test_what_follows_is_as_made_from_scratch_whoever_is_killed(lake: Lake, tmp_path: Path) -> None:
    following = Following(lake=lake, folder=tmp_path, seed=13)
    for number, step in enumerate(STEPS):
        if step[1:] in (("after", "stage"), ("before", "publish_advancing"), ("after", "publish_advancing")):
            following.round(("followed.total", "followed.revenue")[number % 2], step)
    assert following.kills == 3

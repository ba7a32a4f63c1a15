from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from lakelib.storage.listing import FailedDelete, delete_s3, list_s3

NOW = datetime(2026, 11, 18, tzinfo=UTC)


class FakeClient:
    """Pages of one object each; refuses to delete keys that begin with 'held'. Counts what it is asked for."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.pages_read = 0
        self.batches: list[int] = []

    def get_paginator(self, operation: str) -> "FakeClient":
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        for key in self.keys:
            self.pages_read += 1
            yield {"Contents": [{"Key": key, "Size": 1, "LastModified": NOW}]}

    def delete_objects(self, *, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 (boto3's names)
        keys = [each["Key"] for each in Delete["Objects"]]
        self.batches.append(len(keys))
        return {"Errors": [{"Key": key, "Code": "Held", "Message": "no"} for key in keys if key.startswith("held")]}


def test_a_page_is_read_when_it_is_needed() -> None:
    client = FakeClient(["a", "b", "c"])
    entries = list_s3(client, "bucket", "")
    assert next(entries).path == "a"
    assert client.pages_read == 1


def test_objects_that_stand_for_folders_are_no_files() -> None:
    assert [entry.path for entry in list_s3(FakeClient(["folder/", "folder/a"]), "bucket", "")] == ["folder/a"]


def test_a_request_deletes_a_thousand_keys_and_refusals_are_returned() -> None:
    client = FakeClient([])
    keys = [f"key{number}" for number in range(2000)] + ["held"]
    assert list(delete_s3(client, "bucket", keys)) == [FailedDelete(path="held", reason="Held: no")]
    assert client.batches == [1000, 1000, 1]

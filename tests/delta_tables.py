"""Delta tables as other systems write them: what delta-rs does not write (deletion vectors, columns under other names)
is written here action by action."""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VECTOR_MAGIC = 1681511377
_NO_RUNS = 12346


def column(name: str, kind: Any, *, inside: str | None = None, number: int | None = None) -> dict[str, Any]:
    """A field of Delta's schema, perhaps with another name and a number in files."""
    told = {"delta.columnMapping.physicalName": inside, "delta.columnMapping.id": number} if inside else {}
    return {"name": name, "type": kind, "nullable": True, "metadata": told}


def struct_of(*fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def vector(positions: Sequence[int]) -> dict[str, Any]:
    """A deletion vector that is in the log itself, of positions below 65,536."""
    container = struct.pack(f"<{len(positions)}H", *sorted(positions))
    bitmap = struct.pack("<IIHHI", _NO_RUNS, 1, 0, len(positions) - 1, 16) + container
    content = struct.pack("<IQI", _VECTOR_MAGIC, 1, 0) + bitmap
    padded = content + b"\0" * (-len(content) % 4)
    text = base64.b85encode(padded).translate(bytes.maketrans(_B85, _Z85)).decode()
    told = {"pathOrInlineDv": text, "sizeInBytes": len(content), "cardinality": len(positions)}
    return {"storageType": "i", **told}


@dataclass
class DeltaFolder:
    """A Delta table that is written action by action, one version a call."""

    path: Path
    versions: int = field(default=0)

    def commit(self, *actions: Mapping[str, Any]) -> None:
        log = self.path / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{self.versions:020}.json").write_text("\n".join(json.dumps(action) for action in actions))
        self.versions += 1

    def file(
        self,
        name: str,
        rows: pa.Table,
        values: Mapping[str, str | None] | None = None,
        deleted: Sequence[int] = (),
        row_group_rows: int = 1000,
    ) -> dict[str, Any]:
        """Writes a file, and gives the action that adds it."""
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, self.path / name, row_group_size=row_group_rows)
        added: dict[str, Any] = {
            "path": name,
            "partitionValues": dict(values or {}),
            "size": (self.path / name).stat().st_size,
            "modificationTime": self.versions,
            "dataChange": True,
            "stats": json.dumps({"numRecords": rows.num_rows}),
        }
        return {"add": added | ({"deletionVector": vector(deleted)} if deleted else {})}

    def protocol(self, *features: str) -> dict[str, Any]:
        asked = {"readerFeatures": list(features), "writerFeatures": list(features)}
        return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **asked}}

    def metadata(
        self, *columns: Mapping[str, Any], partition_by: Sequence[str] = (), **configuration: str
    ) -> dict[str, Any]:
        told = {name.replace("__", "."): value for name, value in configuration.items()}
        return {
            "metaData": {
                "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(struct_of(*columns)),
                "partitionColumns": list(partition_by),
                "configuration": told,
                "createdTime": 0,
            }
        }

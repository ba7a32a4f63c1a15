"""Masks: which rows of files readers do not see, as of snapshots. Kept partition by partition, each time as a whole."""

from collections.abc import Mapping, Sequence

from psycopg.types.json import Jsonb

from lakelib.catalog.connect import Catalog
from lakelib.catalog.records import Row
from lakelib.dataclass import dataclass
from lakelib.model.files import Mask, MaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMasks:
    """The masks of a partition's files as the last snapshot has left them that touched it."""

    state: MaskState
    masks: tuple[Mask, ...]
    """Of all files that have any, where all are `anew`; else those that are others than before."""
    anew: bool


def find_states(catalog: Catalog, table_id: int, snapshot_id: int, partition_ids: Sequence[int]) -> list[MaskState]:
    """What is known of the partitions' masks, as the snapshot shows them."""
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id, "partition_ids": list(partition_ids)}
    return [
        MaskState(
            partition_id=row["partition_id"],
            touched_at=row["touched_at"],
            known_at=row["known_at"],
            newest_at=row["newest_at"],
            is_reset=bool(row["is_reset"]),
        )
        for row in catalog.all("find_mask_states", parameters)
    ]


def load_masks(catalog: Catalog, table_id: int, snapshot_id: int, known_at: Mapping[int, int]) -> dict[int, Mask]:
    """The masks of the snapshot's files, by file, of partitions each as of a snapshot at which they are kept."""
    parameters = {
        "table_id": table_id,
        "snapshot_id": snapshot_id,
        "partition_ids": list(known_at),
        "known_at": list(known_at.values()),
    }
    return {row["file_id"]: _mask(row) for row in catalog.all("load_masks", parameters)}


def keep_masks(catalog: Catalog, table_id: int, found: Sequence[FoundMasks]) -> set[int]:
    """The partitions whose masks are kept: those of others are, where others were first."""
    wanted = [
        {
            "partition_id": each.state.partition_id,
            "snapshot_id": each.state.touched_at,
            "base": each.state.newest_at,
            "anew": each.anew,
            "masks": [_record(mask) for mask in each.masks],
        }
        for each in found
    ]
    rows = catalog.all("keep_masks", {"table_id": table_id, "wanted": Jsonb(wanted)})
    return {row["partition_id"] for row in rows}


def find_named(catalog: Catalog, table_id: int, paths: Sequence[str]) -> set[str]:
    """Which files of masks, of these, the catalog names, be it to have them deleted."""
    rows = catalog.all("find_named_masks", {"table_id": table_id, "paths": list(paths)})
    return {row["path"] for row in rows}


def _record(mask: Mask) -> dict[str, object]:
    return {
        "file_id": mask.file_id,
        "row_count": mask.cardinality,
        "size_bytes": mask.size_bytes,
        "vector": None if mask.inline is None else mask.inline.hex(),
        "path": mask.path,
    }


def _mask(row: Row) -> Mask:
    return Mask(
        file_id=row["file_id"],
        path=row["path"],
        inline=None if row["vector"] is None else bytes(row["vector"]),
        size_bytes=row["size_bytes"],
        cardinality=row["row_count"],
    )

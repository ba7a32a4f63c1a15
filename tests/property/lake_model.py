"""Pure. What a table of the lake means, told with dicts: the whole history, staged commits and conflicts included.

Maintenance changes no answer here: a compaction puts other files in place of some, an expiry only takes away.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.merge_model import Event, Model
from tests.property.lake_values import ALWAYS, COMMIT, WIDER, Col, Pred, canonical, rank_or_lowest

Values = dict[int, Any]
"""A row: values by column id."""

PartitionKey = tuple[Any, ...]
Place = tuple[PartitionKey, int]
"""A partition, and the snapshot that brought a file to it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The newest that is known of a key; or one row of an append table."""

    row: Values
    commit: int | None
    deleted: bool = False
    events: tuple[Event, ...] = ()
    """All that has come of a key which a merge engine makes a row of."""


@dataclass(frozen=True, slots=True)
class File:
    partition: PartitionKey
    added: int
    """The snapshot that brought the newest of its rows."""
    since: int
    """The snapshot that brought the file, or brought it back."""
    rows: tuple[Entry, ...] = ()
    """Only in append tables."""
    origin: int | None = None
    """The number that it had first, if a rollback has brought it back."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A commit as it was staged."""

    base: int
    new_schema: tuple[Col, ...] | None = None
    upserts: tuple[Values, ...] = ()
    marks: tuple[Values, ...] = ()
    takes_rows: bool = True
    """Whether the marks take rows away; else they are values that count in them."""
    rewritten: tuple[Entry, ...] = ()
    removed_files: frozenset[int] = frozenset()
    removed_partitions: frozenset[PartitionKey] = frozenset()
    read_pred: Pred | None = None
    """It read the partitions where this may be TRUE."""
    read_partitions: frozenset[PartitionKey] = frozenset()
    restores: int | None = None
    """The snapshot whose content it brings back."""
    moves_all: bool = False
    """A rollback that takes compacted files, too, for others: what was between is not known any more."""
    touched: frozenset[PartitionKey] = frozenset()
    """Where a rollback puts other files."""
    key: tuple[str, int] | None = None


@dataclass(slots=True)
class Head:
    """A snapshot's content."""

    schema: tuple[Col, ...]
    schema_version: int = 1
    entries: dict[tuple[Any, ...], Entry] = field(default_factory=dict)
    files: dict[int, File] = field(default_factory=dict)

    def copy(self) -> "Head":
        return Head(self.schema, self.schema_version, dict(self.entries), dict(self.files))


class RefusedError(Exception):
    """What publishing answers in place of a snapshot: the kind of the error."""


class TableModel:
    """One table. `snapshots[n]` is the content of snapshot n."""

    wider: Mapping[str, str] = WIDER
    """What types may become."""

    def __init__(
        self,
        columns: Sequence[Col],
        primary_key: Sequence[int],
        partition_by: Sequence[int],
        sequence_by: Sequence[int],
        merge: Mapping[str, Any] | None = None,
    ) -> None:
        self.merge = merge
        """What makes rows of versions, with ids for names; None: the newest is the row. Its functions are told by the
        columns."""
        self.primary_key = tuple(primary_key)
        self.partition_by = tuple(partition_by)
        self.sequence_by = tuple(sequence_by)
        self.snapshots: list[Head] = [Head(tuple(columns))]
        self.proposals: list[Proposal] = []
        self.states: list[str] = []
        self.became: dict[int, int] = {}
        self.done: dict[str, dict[int, int]] = {}
        self.tags: dict[str, int] = {}
        self.consumers: dict[str, int] = {}
        """Their positions."""
        self.expired: set[int] = set()
        self.compacted: set[int] = set()
        """The files that compactions have taken out."""
        self.compactions: frozenset[int] = frozenset()
        """The snapshots that they became."""
        self.rollbacks: dict[int, frozenset[PartitionKey]] = {}
        """Snapshots that rollbacks became, and where they have put other files."""
        self.next_file = 0
        self.next_column = max(column.id for column in columns) + 1

    def copy(self) -> "TableModel":
        twin = object.__new__(TableModel)
        twin.__dict__.update(self.__dict__)
        twin.snapshots, twin.proposals, twin.states = list(self.snapshots), list(self.proposals), list(self.states)
        twin.became, twin.done = dict(self.became), {name: dict(done) for name, done in self.done.items()}
        twin.tags, twin.expired, twin.compacted = dict(self.tags), set(self.expired), set(self.compacted)
        twin.consumers, twin.rollbacks = dict(self.consumers), dict(self.rollbacks)
        return twin

    # What is there

    @property
    def head_id(self) -> int:
        return len(self.snapshots) - 1

    @property
    def kept_ids(self) -> list[int]:
        """The snapshots that have not expired."""
        return [number for number in range(1, self.head_id + 1) if number not in self.expired]

    @property
    def head(self) -> Head:
        return self.snapshots[-1]

    @property
    def schema(self) -> tuple[Col, ...]:
        return self.head.schema

    @property
    def partition_columns(self) -> frozenset[Col]:
        return frozenset(column for column in self.schema if column.id in self.partition_by)

    def partition_of(self, row: Values) -> PartitionKey:
        return tuple(row.get(column) for column in self.partition_by)

    def key_of(self, row: Values) -> tuple[Any, ...]:
        return self.partition_of(row) + tuple(row[column] for column in self.primary_key)

    def sequence_of(self, row: Values) -> tuple[Any, ...]:
        return tuple(rank_or_lowest(row.get(column)) for column in self.sequence_by)

    def live(self, head: Head) -> list[Entry]:
        if self.primary_key:
            return [entry for entry in head.entries.values() if not entry.deleted]
        return [entry for file in head.files.values() for entry in file.rows]

    # Commits

    def stage(self, proposal: Proposal) -> int:
        """A newer attempt at the same work takes the place of older ones."""
        if proposal.key is not None:
            for number, older in enumerate(self.proposals):
                if older.key == proposal.key and self.states[number] == "staged":
                    self.states[number] = "expired"
        self.proposals.append(proposal)
        self.states.append("staged")
        return len(self.proposals) - 1

    def done_by(self, key: tuple[str, int]) -> int | None:
        """The snapshot that did this work: its own version's, or the first later one's."""
        done = self.done.get(key[0], {})
        version = min((version for version in done if version >= key[1]), default=None)
        return None if version is None else done[version]

    def publish(self, number: int) -> int:
        """The snapshot's id. Raises RefusedError, and has changed nothing then."""
        if self.states[number] == "published":
            return self.became[number]
        proposal = self.proposals[number]
        earlier = None if proposal.key is None else self.done_by(proposal.key)
        if earlier is not None and self.states[number] != "rejected":
            if self.states[number] == "staged":
                self.states[number] = "expired"
            return earlier
        if self.states[number] != "staged":
            raise RefusedError({"rejected": "commit_rejected", "expired": "fenced"}[self.states[number]])
        self._check_conflict(proposal)
        before = self.head
        self.snapshots.append(self.apply(proposal, self.head_id + 1))
        if proposal.restores is not None:
            self.rollbacks[self.head_id] = proposal.touched if self.primary_key else _changed(before, self.head)
        self.states[number] = "published"
        self.became[number] = self.head_id
        if proposal.key is not None:
            self.done.setdefault(proposal.key[0], {})[proposal.key[1]] = self.head_id
        return self.head_id

    def _check_conflict(self, proposal: Proposal) -> None:
        is_rollback = proposal.restores is not None
        if (proposal.new_schema is not None or is_rollback) and (
            self.head.schema_version != self.snapshots[proposal.base].schema_version
        ):
            raise RefusedError("schema_changed")
        base = self.snapshots[proposal.base]
        gone = base.files.keys() - self.head.files.keys() - self.compacted
        taken_out = {number for number, file in base.files.items() if file.partition in proposal.removed_partitions}
        if gone & (taken_out | proposal.removed_files):
            raise RefusedError("input_gone")
        added = {
            file.partition
            for snapshot in self.snapshots[proposal.base + 1 :]
            for file in snapshot.files.values()
            if file.added > proposal.base
        }
        if any(self._reads(proposal, partition) for partition in added):
            raise RefusedError("rows_added")
        since = {number: file for each in self.snapshots[proposal.base :] for number, file in each.files.items()}
        removed = since.keys() - self.head.files.keys() - self.compacted
        orders = bool(self.sequence_by) or is_rollback
        if orders and any(self._reads(proposal, since[number].partition) for number in removed):
            raise RefusedError("rows_removed")
        touched = {each for snapshot, here in self.rollbacks.items() if snapshot > proposal.base for each in here}
        own = {base.files[number].partition for number in taken_out | proposal.removed_files}
        if touched & own or any(self._reads(proposal, partition) for partition in touched):
            raise RefusedError("rolled_back")

    def _reads(self, proposal: Proposal, partition: PartitionKey) -> bool:
        if partition in proposal.read_partitions:
            return True
        return proposal.read_pred is not None and self.may_hold(proposal.read_pred, partition)

    def may_hold(self, pred: Pred, partition: PartitionKey) -> bool:
        """Whether the predicate may be TRUE for a row of the partition."""
        known = dict(zip(self.partition_by, partition, strict=True))
        columns = frozenset(column for column in pred.columns if column.id in known)
        return pred.may_be(True, columns, lambda column: known[column.id])

    def apply(self, proposal: Proposal, commit: int | None) -> Head:
        """The head as the commit leaves it; `commit` is its snapshot, None while it is staged."""
        after = self.head.copy()
        if proposal.restores is not None:
            self._restore(after, proposal, commit or self.head_id + 1)
        if proposal.new_schema is not None:
            after.schema, after.schema_version = proposal.new_schema, self.head.schema_version + 1
        if proposal.removed_partitions:
            gone = proposal.removed_partitions
            after.entries = {key: entry for key, entry in after.entries.items() if self._partition(entry) not in gone}
            after.files = {number: file for number, file in after.files.items() if file.partition not in gone}
        for number in proposal.removed_files if proposal.restores is None else ():
            after.files.pop(number, None)
        fresh = [Entry(row, commit, True) for row in proposal.marks] + [Entry(row, commit) for row in proposal.upserts]
        self._add_files(after, [*fresh, *proposal.rewritten], commit or self.head_id + 1)
        for entry in fresh if self.primary_key else ():
            self._put(after, entry, takes_row=proposal.takes_rows)
        return after

    def _restore(self, after: Head, proposal: Proposal, snapshot: int) -> None:
        """The content of an older snapshot; where only compactions have been since, its rows are in their files."""
        assert proposal.restores is not None
        target = self.snapshots[proposal.restores]
        after.entries = dict(target.entries)
        moves_all = proposal.moves_all if proposal.base == self.head_id else self.forgets_since(proposal.restores)
        come, gone = self.moved(proposal.restores, moves_all=moves_all)
        for number in come:
            del after.files[number]
        for number in sorted(gone):
            file = target.files[number]
            origin = number if file.origin is None else file.origin
            after.files[self.next_file] = File(file.partition, file.added, snapshot, file.rows, origin)
            self.next_file += 1

    def moved(self, target: int, *, moves_all: bool) -> tuple[set[int], set[int]]:
        """The files that a rollback takes out of the head, and those of the target that it brings back."""
        changed = {
            partition
            for place, snapshot in enumerate(self.snapshots[target + 1 :], start=target + 1)
            if place not in self.compactions
            for partition in _changed(self.snapshots[place - 1], snapshot)
        }
        sides = []
        for here, there in ((self.head, self.snapshots[target]), (self.snapshots[target], self.head)):
            known = {number if file.origin is None else file.origin for number, file in there.files.items()}
            sides.append(
                {
                    number
                    for number, file in here.files.items()
                    if (number if file.origin is None else file.origin) not in known
                    and (moves_all or file.partition in changed)
                }
            )
        return sides[0], sides[1]

    def forgets_since(self, target: int) -> bool:
        """Whether something that came after the snapshot has expired."""
        return any(number > target for number in self.expired)

    def place_files(self, snapshot: int, places: set[Place]) -> None:
        """Of a table with a key, what a snapshot's files are in truth, bucket by bucket. No rows are in them."""
        head = self.snapshots[snapshot]
        known = {(file.partition, file.since): number for each in self.snapshots for number, file in each.files.items()}
        newest = {
            partition: max((file.added for file in head.files.values() if file.partition == partition), default=0)
            for partition, _ in places
        }
        found: dict[int, File] = {}
        for partition, since in places:
            number = known.get((partition, since))
            if number is None:
                number, self.next_file = self.next_file, self.next_file + 1
                found[number] = File(partition, newest[partition], since)
            else:
                found[number] = next(each.files[number] for each in self.snapshots if number in each.files)
        head.files = dict(sorted(found.items()))

    def _partition(self, entry: Entry) -> PartitionKey:
        return self.partition_of(entry.row)

    def _add_files(self, after: Head, entries: Sequence[Entry], added: int) -> None:
        for partition in dict.fromkeys(map(self._partition, entries)):
            rows = () if self.primary_key else tuple(each for each in entries if self._partition(each) == partition)
            after.files[self.next_file] = File(partition, added, added, rows)
            self.next_file += 1

    def _put(self, after: Head, entry: Entry, *, takes_row: bool) -> None:
        key = self.key_of(entry.row)
        known = after.entries.get(key)
        if self.merge is not None:
            event = Event(entry.row, entry.deleted, entry.deleted and takes_row, entry.commit)
            after.entries[key] = self._merged(after.schema, () if known is None else known.events, event)
        elif known is None or self.sequence_of(entry.row) >= self.sequence_of(known.row):
            after.entries[key] = entry

    def _merged(self, schema: Sequence[Col], known: tuple[Event, ...], event: Event) -> Entry:
        """What has come of a key before, and what comes now."""
        model = self._merging(schema)
        events = tuple(model.counted((*known, event)))
        row = model.merged(events) if events else None
        if row is None:
            return Entry(event.row, event.commit, True, events)
        return Entry(row, model.chosen(events).commit, False, events)

    def _merging(self, schema: Sequence[Col]) -> Model:
        assert self.merge is not None
        return Model(
            key=self.primary_key,
            columns=tuple(column.id for column in schema),
            merge={**self.merge, "functions": {column.id: column.function for column in schema if column.function}},
            sequence=self.sequence_by,
            fixed=tuple(each for each in self.partition_by if each not in self.primary_key),
        )

    # Maintenance

    def compact(self, replaced: set[Place], left: set[Place]) -> None:
        """The next snapshot: the rows of the head in other files. `replaced` are the places of the files that were
        taken out, `left` those of all that are live afterwards."""
        after = self.head.copy()
        snapshot = self.head_id + 1
        self.compactions |= {snapshot}
        for partition in {partition for partition, _ in replaced}:
            here = {number: file for number, file in after.files.items() if file.partition == partition}
            taken = {number: file for number, file in here.items() if (partition, file.since) in replaced}
            gone = {number: file for number, file in taken.items() if (partition, file.since) not in left}
            for number in gone:
                del after.files[number]
            self.compacted |= gone.keys()
            if (partition, snapshot) in left:
                newest = max(file.added for file in taken.values())
                rows = tuple(row for file in gone.values() for row in file.rows)
                after.files[self.next_file] = File(partition, newest, snapshot, rows)
                self.next_file += 1
        self.snapshots.append(after)

    def tag(self, name: str, snapshot: int | None) -> int:
        """The snapshot, the head unless told, that the name pins afterwards. Raises RefusedError."""
        wanted = snapshot or self.head_id
        if wanted in self.expired:
            raise RefusedError("snapshot_expired")
        if not 0 < wanted <= self.head_id:
            raise RefusedError("snapshot_not_found")
        if self.tags.get(name, wanted) != wanted:
            raise RefusedError("tag_exists")
        self.tags[name] = wanted
        return wanted

    def is_done(self, number: int) -> bool:
        """Whether the proposal was published, or another one that did the same work."""
        if self.states[number] in ("published", "rejected"):
            return self.states[number] == "published"
        key = self.proposals[number].key
        return key is not None and self.done_by(key) is not None

    def move(self, name: str, seen: int, to: int, *, backwards: bool, is_replay: bool) -> int:
        """As `advance`, from the position that was read, with commits; `is_replay`: they were all done before. One that
        has come as far has moved with them."""
        position = self.consumers[name]
        if is_replay and (position == to or (position > to and not backwards)):
            return position
        if position != seen:
            raise RefusedError("consumer_moved")
        return self.advance(name, to, backwards=backwards)

    def advance(self, name: str, to: int, *, backwards: bool) -> int:
        """The position of the consumer afterwards. Raises RefusedError."""
        if to > self.head_id:
            raise RefusedError("consumer_beyond_head")
        if to < self.consumers[name] and not backwards:
            raise RefusedError("consumer_backwards")
        if to < self.consumers[name] and to in self.expired:
            raise RefusedError("consumer_past_expired")
        self.consumers[name] = to
        return to

    def expire(self, keep_last: int, expired: Sequence[int], leased: set[int], *, with_commits: bool) -> list[int]:
        """These snapshots have expired; gives those that something keeps from it. What tags pin, what is leased, what a
        consumer has not read and what open commits that have read rows may have to be compared with stays; others may
        hold it, too."""
        open_commits = [number for number, state in enumerate(self.states) if state in ("staged", "rejected")]
        if with_commits:
            for number in open_commits:
                self.states[number] = "expired"
            open_commits = []
        bases = [self.proposals[number].base for number in open_commits]
        reading = [each.base for each in map(self.proposals.__getitem__, open_commits) if self._has_read(each)]
        restored = {
            each.restores for each in map(self.proposals.__getitem__, open_commits) if each.restores is not None
        }
        unread = {each for each in self.kept_ids if each >= min(self.consumers.values(), default=self.head_id)}
        pinned = leased | set(self.tags.values()) | restored | unread
        let_go = self.kept_ids[: max(0, len(self.kept_ids) - keep_last)]
        free = [number for number in let_go if number not in pinned]
        assert set(expired) >= {number for number in free if number < min(bases, default=self.head_id)}
        assert set(expired) <= {number for number in free if number < min(reading, default=self.head_id)}
        self.expired |= set(expired)
        return [number for number in let_go if number not in expired]

    def _has_read(self, proposal: Proposal) -> bool:
        """It takes files out, or has looked for rows that there may be: for those that NULL is TRUE of nobody looks."""
        pred = proposal.read_pred
        return (
            proposal.restores is not None
            or bool(proposal.removed_files)
            or (pred is not None and pred.may_be(True, frozenset(), lambda _: None))
        )

    # What a caller means

    def newest(self, rows: Iterable[Values], auxiliary: Sequence[Any] = ()) -> tuple[Values, ...]:
        """One row a key: the newest by sequence, then by the auxiliary order, then by position."""
        if not self.primary_key:
            return tuple(rows)
        if self.merge is not None:
            return self._complete(rows, auxiliary)
        best: dict[tuple[Any, ...], tuple[Any, Values]] = {}
        for position, row in enumerate(rows):
            order = (*self.sequence_of(row), rank_or_lowest(auxiliary[position]) if auxiliary else ())
            key = self.key_of(row)
            if key not in best or order >= best[key][0]:
                best[key] = (order, row)
        return tuple(row for _, row in best.values())

    def _complete(self, rows: Iterable[Values], auxiliary: Sequence[Any]) -> tuple[Values, ...]:
        """All versions of a batch, in the order in which they come; what they lack is NULL."""
        empty: Values = {column.id: None for column in self.schema}
        listed = [empty | row for row in rows]
        ranks = [rank_or_lowest(each) for each in auxiliary] or [()] * len(listed)
        return tuple(listed[place] for place in sorted(range(len(listed)), key=ranks.__getitem__))

    def upsert(self, rows: Sequence[Values], auxiliary: Sequence[Any], **more: Any) -> Proposal:
        return self._proposal(upserts=self.newest(rows, auxiliary), **more)

    def delete_keys(self, rows: Sequence[Values], *, with_sequence: bool, **more: Any) -> Proposal:
        """`with_sequence`: the rows say all that marks say."""
        if self.merge is not None:
            more["takes_rows"] = not (self.retracts or self.empties_groups)
        if with_sequence or not (self.sequence_by or self.merge) or (self.merge and not self.empties_groups):
            return self._proposal(marks=self.newest(rows), **more)
        wanted = {self.key_of(row) for row in rows}
        found = [entry.row for entry in self.live(self.head) if self.key_of(entry.row) in wanted]
        read = frozenset(map(self.partition_of, rows))
        return self._proposal(marks=self._marks(found), read_partitions=read, **more)

    @property
    def retracts(self) -> bool:
        return self.merge is not None and bool(self.merge.get("retract"))

    @property
    def refuses_deletes(self) -> bool:
        return self.merge is not None and self.merge.get("on_delete") == "refuse"

    @property
    def grouped_ids(self) -> tuple[int, ...]:
        """The columns of sequence groups."""
        groups = self.merge.get("groups", ()) if self.merge else ()
        return tuple(each for group in groups for each in (*group["sequence"], *group["columns"]))

    @property
    def empties_groups(self) -> bool:
        return self.merge is not None and self.merge.get("on_delete") == "groups"

    def _marks(self, rows: Iterable[Values]) -> tuple[Values, ...]:
        """Of rows what a delete has: those of groups that are emptied are all."""
        kept = {*self.primary_key, *self.partition_by, *self.sequence_by}
        for group in self.merge.get("groups", ()) if self.merge else ():
            kept.update(group["sequence"])
        if self.merge is None:
            return tuple(rows)
        return tuple({each: value if each in kept else None for each, value in row.items()} for row in rows)

    def delete(self, pred: Pred, **more: Any) -> Proposal:
        asked = {column.id for column in pred.columns}
        if asked <= set(self.partition_by) and not self.empties_groups:
            return self._drop(pred, **more)
        more["read_pred"] = pred
        if self.primary_key:
            found = [entry.row for entry in self.live(self.head) if matches(pred, entry)]
            return self._proposal(marks=self._marks(found), takes_rows=not self.empties_groups, **more)
        touched = {
            number: file for number, file in self.head.files.items() if any(matches(pred, entry) for entry in file.rows)
        }
        kept = [entry for file in touched.values() for entry in file.rows if not matches(pred, entry)]
        return self._proposal(rewritten=tuple(kept), removed_files=frozenset(touched), **more)

    def overwrite_all(self, rows: Sequence[Values], **more: Any) -> Proposal:
        gone = frozenset(file.partition for file in self.head.files.values())
        return self._proposal(upserts=self.newest(rows), removed_partitions=gone, read_pred=ALWAYS, **more)

    def overwrite_dynamic(self, rows: Sequence[Values], **more: Any) -> Proposal:
        own = frozenset(map(self.partition_of, rows))
        return self._proposal(upserts=self.newest(rows), removed_partitions=own, read_partitions=own, **more)

    def overwrite_static(self, rows: Sequence[Values], pred: Pred, **more: Any) -> Proposal:
        gone = self._partitions_matching(pred)
        return self._proposal(upserts=self.newest(rows), removed_partitions=gone, read_pred=pred, **more)

    def replace(self, rows: Sequence[Values], pred: Pred, **more: Any) -> Proposal:
        """What the delete does, and the rows behind it."""
        by_partition = {column.id for column in pred.columns} <= set(self.partition_by)
        return replace((self._drop if by_partition else self.delete)(pred, **more), upserts=self.newest(rows))

    def _drop(self, pred: Pred, **more: Any) -> Proposal:
        """The partitions that match go."""
        return self._proposal(removed_partitions=self._partitions_matching(pred), read_pred=pred, **more)

    def _partitions_matching(self, pred: Pred) -> frozenset[PartitionKey]:
        return frozenset(file.partition for file in self.head.files.values() if self.may_hold(pred, file.partition))

    def _proposal(self, **content: Any) -> Proposal:
        return Proposal(base=self.head_id, **content)

    def evolve(self, schema: Sequence[Col], **more: Any) -> Proposal:
        return self._proposal(new_schema=tuple(schema), **more)

    def rollback(self, target: int, come: set[Place], touched: set[PartitionKey], **more: Any) -> Proposal:
        """It depends on all that there is. It takes out the files of the places `come`: a table with a key has files
        for buckets, of which nothing is known here."""
        moves_all = self.forgets_since(target)
        found, gone = self.moved(target, moves_all=moves_all)
        if self.primary_key:
            found = {number for number, file in self.head.files.items() if (file.partition, file.since) in come}
        else:
            assert come == {(file.partition, file.since) for file in map(self.head.files.__getitem__, found)}
            assert touched == {place[0] for place in come} | {
                self.snapshots[target].files[each].partition for each in gone
            }
        return self._proposal(
            restores=target,
            moves_all=moves_all,
            removed_files=frozenset(found),
            touched=frozenset(touched),
            read_pred=ALWAYS,
            **more,
        )

    def rows_of(self, proposal: Proposal) -> list[Entry]:
        """The rows that a staged commit brings."""
        if self.merge is None:
            return [Entry(row, None) for row in proposal.upserts] + list(proposal.rewritten)
        found = Head(proposal.new_schema or self.snapshots[proposal.base].schema)
        for row in proposal.upserts:
            self._put(found, Entry(row, None), takes_row=True)
        return self.live(found)

    def conflicts(self, proposal: Proposal) -> bool:
        try:
            self._check_conflict(proposal)
        except RefusedError:
            return True
        return False


def _changed(before: Head, after: Head) -> frozenset[PartitionKey]:
    """The partitions that have other files."""
    differing = before.files.keys() ^ after.files.keys()
    return frozenset((before.files.get(number) or after.files[number]).partition for number in differing)


def matches(pred: Pred | None, entry: Entry) -> bool:
    """Whether the predicate is TRUE for a row."""
    return pred is None or pred.value(lambda column: value_of(entry, column)) is True


def value_of(entry: Entry, column: Col) -> Any:
    return entry.commit if column == COMMIT else entry.row.get(column.id)


def shown(entries: Iterable[Entry], columns: Sequence[Col], pred: Pred | None) -> list[tuple[Any, ...]]:
    """The rows that a read gives, in a canonical order."""
    found = (entry for entry in entries if matches(pred, entry))
    return sorted((tuple(canonical(value_of(entry, column)) for column in columns) for entry in found), key=repr)

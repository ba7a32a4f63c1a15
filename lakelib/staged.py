"""The public API: StagedCommit. What waits to be judged, published or rejected."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import UUID

from lakelib.catalog import tables
from lakelib.errors import InvalidInputError
from lakelib.model.gate import Verdict
from lakelib.model.predicate import Predicate
from lakelib.model.table import Snapshot, TableRef
from lakelib.ops import (
    decide,
    gates,
    judge,
    publish,
    read,
    report,
)
from lakelib.ops.judge import Judging
from lakelib.ops.runtime import Runtime
from lakelib.scan import Scan
from lakelib.specs.suite import Suite


class StagedCommit:
    """A commit that nobody sees yet. It is judged; published, rejected, or replaced by a newer attempt at the same
    work."""

    def __init__(self, runtime: Runtime, ref: TableRef, commit_id: UUID, *, judged_by: Judging | None = None) -> None:
        self._runtime = runtime
        self._ref = ref
        self._commit_id = commit_id
        self._judgings: dict[str, Judging] = {} if judged_by is None else {judged_by.suite.name: judged_by}

    @property
    def id(self) -> UUID:
        return self._commit_id

    @property
    def table_name(self) -> str:
        return self._ref.full_name

    @property
    def state(self) -> str:
        """ "staged", "published", "rejected" or "expired"."""
        return decide.find_state(self._runtime, self._commit_id)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        scope: str = "merged",
        *,
        on_top_of: Sequence["StagedCommit"] = (),
    ) -> Scan:
        """The table as publishing now would leave it ("merged"), or the commit's own rows ("staged"). Commits of the
        same table that it is `on_top_of` are taken for published, in this order: so the table would be after a
        transaction of them all."""
        view = read.staged_view(self._commit_id, scope, self._beneath(on_top_of))
        request = read.ScanRequest(columns=read.names_of(columns), where=where, staged=view)
        return Scan(
            self._runtime, read.plan_scan(self._runtime, tables.load_table(self._runtime.catalog, self._ref), request)
        )

    def judge(
        self,
        gate: str | PathLike[str] | Suite | None = None,
        session: Any = None,
        *,
        on_top_of: Sequence["StagedCommit"] = (),
    ) -> Verdict:
        """Has a gate look at the commit: the path of a suite, or a suite; without one the suite that the table
        requires. On Spark with a session, else in process. Commits of the same table that it is `on_top_of` are taken
        for published, in this order: the verdict counts once they are, as in a transaction of them all.

        The verdict is kept with the commit; one that rejects also rejects the commit. A commit that is rejected stays
        so, whatever later verdicts say.
        """
        suite = gates.required_of(self._runtime, self._commit_id) if gate is None else judge.open_gate(gate)
        judging = Judging(suite=suite, session=session)
        verdict = judge.judge(self._runtime, self._commit_id, judging, self._beneath(on_top_of))
        self._judgings[judging.suite.name] = judging
        return verdict

    def _beneath(self, on_top_of: Sequence["StagedCommit"]) -> list[UUID]:
        for other in on_top_of:
            if not isinstance(other, StagedCommit) or other._ref.id != self._ref.id or other.id == self.id:
                raise InvalidInputError(
                    f"on_top_of has {other!r}.",
                    kind="invalid_on_top_of",
                    remedy=f"Give other staged commits of {self.table_name}.",
                )
        return [other.id for other in on_top_of]

    @property
    def ref(self) -> TableRef:
        """Of which table it is: for lakelib's own parts."""
        return self._ref

    @property
    def judgings(self) -> Sequence[Judging]:
        """How it was judged by this handle, once for each gate: for lakelib's own parts."""
        return tuple(self._judgings.values())

    @property
    def verdict(self) -> Verdict | None:
        """The newest one, whoever has judged; None before the first."""
        return judge.find_verdict(self._runtime, self._commit_id)

    def report(self, path: str | PathLike[str]) -> Path:
        """Writes the newest verdict as a page of HTML that needs no network. Raises NotFoundError before the first."""
        return report.write_report(self._runtime, self._commit_id, path)

    def publish(self, by: str | None = None, reason: str | None = None) -> Snapshot:
        """Makes the commit a snapshot; safe to repeat. Raises ConflictError if what it depends on has changed since.

        Every gate that has judged the commit must have passed it, and the suite that the table requires; else it is a
        RejectedError. Where rows have changed since that a verdict rests on, or another version of the suite is
        required by now, this handle judges again, if it has judged before. A person publishes whatever gates say, by
        name and reason, which the snapshot tells.
        """
        return publish.publish(self._runtime, [self._commit_id], lambda _: self.judgings, by=by, reason=reason)[0]

    def reject(self, reason: str) -> None:
        """Ends the commit: it stays inspectable, and only a person publishes it, by name and reason."""
        decide.reject_staged(self._runtime, self._commit_id, reason)

    def discard(self, by: str, reason: str) -> None:
        """A person decides against the commit: it is rejected, and waits for nobody any more."""
        decide.discard_staged(self._runtime, self._commit_id, by, reason)

    def __repr__(self) -> str:
        return (
            f"<StagedCommit {self._commit_id} of {self.table_name}: {judge.describe(self._runtime, self._commit_id)}>"
        )

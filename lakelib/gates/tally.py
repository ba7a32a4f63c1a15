"""Pure, but for the process that tests texts apart. What a plan asks for is gathered from batches of rows, and what was
gathered in different places is put together.
"""

import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelib.dataclass import dataclass
from lakelib.gates.apart import Apart
from lakelib.gates.plan import Asked, GatePlan, Gathered, Summarised, Tested
from lakelib.gates.questions import Answer, AskedOfHeaps, Question
from lakelib.gates.row_tests import PassesApart
from lakelib.gates.rows import Domain, Rows
from lakelib.gates.summary import Heap, Summary
from lakelib.rows.buffers import array_of_mask

_PIECE_BYTES = 32 * 2**20


@dataclass(slots=True)
class Unexpected:
    count: int = 0
    sample: list[Any] = field(default_factory=list)
    """Values, or those of several columns together."""

    def merge(self, other: "Unexpected", most: int) -> None:
        self.count += other.count
        self.sample = [*self.sample, *other.sample][:most]


@dataclass(slots=True)
class Found:
    """What was found of some rows, or of all of them."""

    counts: dict[Domain, int] = field(default_factory=dict)
    tests: dict[int, Unexpected] = field(default_factory=dict)
    summaries: dict[Summarised, Summary] = field(default_factory=dict)
    answers: dict[tuple[Gathered, Question], Answer] = field(default_factory=dict)
    errors: dict[Any, str] = field(default_factory=dict)
    """Why a need could not be met, by the place of the check, or what several share."""

    def merge(self, other: "Found", plan: GatePlan) -> None:
        self.errors |= other.errors
        for domain, count in other.counts.items():
            self.counts[domain] = self.counts.get(domain, 0) + count
        for place, unexpected in other.tests.items():
            need = plan.needs[place]
            assert isinstance(need, Tested)
            self.tests.setdefault(place, Unexpected()).merge(unexpected, need.sample)
        for need, summary in other.summaries.items():
            self.summaries.setdefault(need, Summary()).merge(summary)
        for (gathered, question), answer in other.answers.items():
            known = self.answers.get((gathered, question))
            if known is not None:
                assert isinstance(question, AskedOfHeaps)
                answer = question.merge(known, answer)
            self.answers[gathered, question] = answer


class Tally:
    """Counts as rows pass by. What must be seen of all rows it holds. Closed when it is done."""

    def __init__(self, plan: GatePlan) -> None:
        self._plan = plan
        self.found = Found(counts=dict.fromkeys(_domains(plan), 0))
        self._heaps: dict[Gathered, Heap] = {gathered: Heap() for gathered in _questions(plan)}
        for place, need in plan.needs.items():
            if isinstance(need, Tested):
                self.found.tests[place] = Unexpected()
            elif isinstance(need, Summarised):
                self.found.summaries[need] = Summary()
        self._seconds_left = {place: need.seconds for place, need in plan.needs.items() if isinstance(need, Tested)}
        self._memory: dict[Any, Any] = {}
        self._apart = Apart()

    def __enter__(self) -> "Tally":
        return self

    def __exit__(self, *_: object) -> None:
        self._apart.close()

    def add(self, batch: pa.RecordBatch) -> None:
        rows = Rows(batch, self._memory)
        for domain in self.found.counts:
            self.found.counts[domain] += rows.count_of(domain)
        for place in self.found.tests:
            self._try(place, self._test, rows, place)
        for need in self.found.summaries:
            self._try(need, self._summarise, rows, need)
        for gathered in self._heaps:
            self._try(gathered, self._gather, rows, gathered)

    def finish(self) -> Found:
        """What was found of all rows that were added."""
        for gathered, questions in _questions(self._plan).items():
            for _, rows in self._heaps[gathered].heaps(1):
                self.found.merge(_answered(gathered, questions, rows), self._plan)
        return self.found

    def parts(self, heap_count: int) -> Iterator[tuple[int, bytes]]:
        """What was found, to be put together with what others have found, in numbered pieces: those of one number need
        each other."""
        yield 0, pickle.dumps(self.found)
        for number, (gathered, questions) in enumerate(_questions(self._plan).items()):
            apart = all(isinstance(question, AskedOfHeaps) for question in questions)
            for place, rows in self._heaps[gathered].heaps(heap_count if apart else 1):
                for piece in rows.to_batches(max_chunksize=_rows_in_piece(rows)):
                    yield number + place, pickle.dumps((number, place, _as_bytes(piece)))

    def _try(self, key: Any, gather: Callable[..., None], *given: Any) -> None:
        """What could not be carried out once is not tried again."""
        if key in self.found.errors:
            return
        try:
            gather(*given)
        except Exception as error:  # whatever Arrow stumbles over, nothing is said of the data
            self.found.errors[key] = str(error) or type(error).__name__

    def _summarise(self, rows: Rows, need: Summarised) -> None:
        self.found.summaries[need].add(rows.of(need.domain, [need.column])[0])

    def _gather(self, rows: Rows, gathered: Gathered) -> None:
        self._heaps[gathered].add(rows.of(gathered.domain, gathered.columns))

    def _test(self, rows: Rows, place: int) -> None:
        need = self._plan.needs[place]
        assert isinstance(need, Tested)
        unexpected = self._unexpected(rows, need, place)
        if unexpected is None or not (count := unexpected.true_count):
            return
        found = self.found.tests[place]
        found.count += count
        if len(found.sample) < need.sample:
            places = pc.indices_nonzero(unexpected)[: need.sample - len(found.sample)]
            columns = rows.values_at(need.columns, places)
            found.sample += columns[0] if len(columns) == 1 else zip(*columns, strict=True)

    def _unexpected(self, rows: Rows, need: Tested, place: int) -> pa.BooleanArray | None:
        """None for no row."""
        chosen = rows.chosen(need.domain)
        if isinstance(need.test, PassesApart):
            return self._unexpected_apart(rows, need.test, chosen, place)
        passed = need.test.holds(rows)
        if passed is True:
            return None
        if passed is False:
            return array_of_mask(np.ones(rows.count, np.bool_)) if chosen is None else chosen
        failed = pc.invert(pc.fill_null(passed, False) if passed.null_count else passed)
        return failed if chosen is None else pc.and_(failed, chosen)

    def _unexpected_apart(
        self, rows: Rows, test: PassesApart, chosen: pa.BooleanArray | None, place: int
    ) -> pa.BooleanArray | None:
        """Each text of the batch is tested once, however many rows have it."""
        coded = rows.coded(test.column)
        texts = coded.dictionary.to_pylist()
        if not texts:
            return None
        started = time.monotonic()
        passed = self._apart.test(test.kind, test.argument, texts, self._seconds_left[place])
        self._seconds_left[place] -= time.monotonic() - started
        failed = array_of_mask(np.frombuffer(passed, np.uint8) == 0).take(coded.indices)
        failed = pc.fill_null(failed, False)
        return failed if chosen is None else pc.and_(failed, chosen)


def combine(plan: GatePlan, pieces: Iterable[bytes]) -> Found:
    """What several tallies have found, of pieces whose numbers are here with all that need them."""
    questions = list(_questions(plan).items())
    found = Found()
    heaps: dict[tuple[int, int], list[pa.RecordBatch]] = {}
    for piece in pieces:
        match pickle.loads(piece):
            case Found() as part:
                found.merge(part, plan)
            case (number, place, rows):
                heaps.setdefault((number, place), []).extend(pa.ipc.open_stream(rows))
    for (number, _), batches in heaps.items():
        found.merge(_answered(*questions[number], pa.Table.from_batches(batches)), plan)
    return found


def _answered(gathered: Gathered, questions: Iterable[Question], rows: pa.Table) -> Found:
    found = Found()
    for question in questions:
        try:
            found.answers[gathered, question] = question.answer(rows)
        except Exception as error:  # see Tally
            found.errors[gathered] = str(error) or type(error).__name__
    return found


def _questions(plan: GatePlan) -> dict[Gathered, list[Question]]:
    """What is asked of the same values, each once."""
    found: dict[Gathered, list[Question]] = {}
    for need in plan.needs.values():
        if isinstance(need, Asked) and need.question not in found.setdefault(need.gathered, []):
            found[need.gathered].append(need.question)
    return found


def _domains(plan: GatePlan) -> list[Domain]:
    return list(dict.fromkeys(domain for need in plan.needs.values() for domain in (need.base, need.domain)))


def _rows_in_piece(rows: pa.Table) -> int:
    return max(1, int(rows.num_rows * _PIECE_BYTES // max(_PIECE_BYTES, rows.nbytes)))


def _as_bytes(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue().to_pybytes())

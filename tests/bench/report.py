"""What a measurement says, and how it is printed: one line each, as soon as it is known."""

from collections.abc import Sequence
from dataclasses import dataclass

_WIDTHS = (44, 12, 12, 10, 11, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    operation: str
    ours: str
    peer: str
    figure: str
    """What is compared with the bar."""
    bar: str
    met: bool
    note: str = ""


def at_most_times(operation: str, ours: float, peer: float, bar: float, note: str = "") -> Line:
    """Ours may take `bar` times as long as the baseline."""
    ratio = ours / peer
    return Line(
        operation=operation,
        ours=show_seconds(ours),
        peer=show_seconds(peer),
        figure=f"{ratio:.2f} ×",
        bar=f"≤ {bar:g} ×",
        met=ratio <= bar,
        note=note,
    )


def times_faster(operation: str, ours: float, peer: float, bar: float, note: str = "") -> Line:
    """The peer must take `bar` times as long as ours."""
    ratio = peer / ours
    return Line(
        operation=operation,
        ours=show_seconds(ours),
        peer=show_seconds(peer),
        figure=f"{ratio:.1f} ×",
        bar=f"≥ {bar:g} ×",
        met=ratio >= bar,
        note=note,
    )


def at_most(operation: str, shown: str, value: float, bar: float, unit: str, note: str = "", peer: str = "") -> Line:
    """A value that is itself compared with the bar."""
    return Line(
        operation=operation,
        ours=shown,
        peer=peer or "-",
        figure=f"{value:.1f} {unit}",
        bar=f"≤ {bar:g} {unit}",
        met=value <= bar,
        note=note,
    )


def at_least(operation: str, value: float, bar: float, unit: str, note: str = "") -> Line:
    """A value that must not be below the bar."""
    return Line(
        operation=operation,
        ours=f"{value:.0f} {unit}",
        peer="-",
        figure=f"{value:.0f}",
        bar=f"≥ {bar:g}",
        met=value >= bar,
        note=note,
    )


def show_seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.5 else f"{seconds * 1000:.1f} ms"


def print_header() -> None:
    _print_cells(("operation", "ours", "peer", "figure", "bar", ""), "")
    print("-" * (sum(_WIDTHS) + 2 * len(_WIDTHS)))


def print_line(line: Line) -> None:
    verdict = "OK" if line.met else "MISSED"
    _print_cells((line.operation, line.ours, line.peer, line.figure, line.bar, verdict), line.note)


def print_summary(lines: Sequence[Line]) -> None:
    missed = [f"{line.operation} ({line.figure}, bar {line.bar})" for line in lines if not line.met]
    print()
    print(f"Missed bars: {'; '.join(missed)}" if missed else f"All {len(lines)} bars are met.")


def _print_cells(cells: Sequence[str], note: str) -> None:
    first, *rest = cells
    shown = [first.ljust(_WIDTHS[0]), *(cell.rjust(width) for cell, width in zip(rest, _WIDTHS[1:], strict=True))]
    print("  ".join([*shown, note]).rstrip(), flush=True)

"""Every figure that a comparison shows beside its curves, by its name; what cannot be drawn is missing."""

from collections.abc import Sequence

from jobs.figures.bars import bar_figure, names_of
from jobs.figures.boxes import box_figure
from jobs.figures.breakeven import breakeven_figure
from jobs.figures.curves import band_in_words
from jobs.figures.memory import memory_figure
from jobs.figures.parallel import parallel_figure
from jobs.figures.scatter import scatter_figure
from jobs.figures.step import step_figure
from jobs.figures.style import Figure
from jobs.selectors.baseline import CellRow
from jobs.selectors.columns import Column
from jobs.selectors.compared import Compared
from jobs.statistics import Band

_STEP_TIME, _LOSS = "steady_step_time_ms", "final_eval_loss"


def compared_figures(compared: Compared, across: str = _STEP_TIME, up: str = _LOSS) -> dict[str, Figure]:
    """`time`, `memory`, `step`, `scatter`, `repeats`, `breakeven` and `parallel`.

    `across` and `up` are the metrics of the scatter, `up` also that of the repeats.
    """
    comparison, columns, rows = compared.comparison, compared.columns, compared.by_name
    metric = comparison.metric(up)
    drawn = {
        "time": _bars(columns, rows[_STEP_TIME], compared.band) if _STEP_TIME in rows else None,
        "memory": memory_figure(columns, rows),
        "step": step_figure(compared.steps) if compared.steps else None,
        "scatter": scatter_figure(columns, rows[across], rows[up]) if {across, up} <= set(rows) else None,
        "repeats": box_figure(comparison, columns, metric) if metric else None,
        "breakeven": breakeven_figure(compared.courses) if len(compared.courses) > 1 else None,
        "parallel": parallel_figure(comparison, columns),
    }
    return {name: figure for name, figure in drawn.items() if figure}


def _bars(columns: Sequence[Column], row: CellRow, band: Band) -> Figure:
    return bar_figure(
        names_of(columns),
        [cell.value for cell in row.cells],
        title=row.metric.label,
        unit=row.metric.unit,
        spreads=[cell.spread for cell in row.cells],
        places=[column.place for column in columns],
        words=band_in_words(band) if any(cell.spread for cell in row.cells) else "",
    )

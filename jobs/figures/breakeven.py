"""Time taken by steps, from the first one on: where two lines cross, the slower start has paid off."""

from collections.abc import Sequence

from django.utils.translation import gettext

from jobs.figures.style import Figure, colour_of, dash_of, layout
from jobs.selectors.breakeven import Course

_FEWEST_STEPS = 100


def breakeven_figure(courses: Sequence[Course]) -> Figure:
    """A line for each course, up to half as far again as the last of them needs to pay off."""
    crossings = [course.pays_off_after for course in courses if course.pays_off_after]
    last = round(1.5 * max([_FEWEST_STEPS, *crossings]))
    shape = layout(
        x_title=gettext("Optimizer steps"),
        y_title=gettext("Time taken (s)"),
        caption=gettext(
            "Seconds from the start of the first step, as first step (with compilation) and step time give them."
        ),
        alternative="; ".join(f"{course.column.label}: {course.words}" for course in courses),
        hovermode="x unified" if len(courses) <= 14 else "closest",
        showlegend=False,
    )
    shape["xaxis"]["rangemode"] = shape["yaxis"]["rangemode"] = "tozero"
    return {"data": [_line(course, last) for course in courses], "layout": shape}


def _line(course: Course, last: int) -> Figure:
    crossing = course.pays_off_after
    x = sorted({0, last} | ({crossing} if crossing else set()))
    place = course.column.place
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": course.column.label,
        "x": x,
        "y": [course.start_s + steps * course.step_s for steps in x],
        "line": {"color": colour_of(place), "dash": dash_of(place), "width": 2},
        "marker": {"color": colour_of(place), "size": [9 if steps == crossing else 0 for steps in x]},
        "hovertemplate": "%{y:.4g} s",
        "meta": {"place": place, "part": "line", "jobs": course.column.job_ids},
    }

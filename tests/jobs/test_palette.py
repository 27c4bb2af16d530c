"""The colours of lines and bars: those of the figures, and those that the page's two themes put in their place.

Colour blindness is simulated as by Machado, Oliveira and Fernandes (2009, doi:10.1109/TVCG.2009.113) at full severity.
"""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from jobs.figures import DASHES, PALETTE, colour_of, dash_of

STYLESHEET = Path(__file__).parents[2] / "webapp/static/css/pitwall.css"
TOKENS = re.findall(r"--series-\d: (#\w{6});", STYLESHEET.read_text())
PALETTES = {"figures": PALETTE, "light": tuple(TOKENS[:6]), "dark": tuple(TOKENS[6:])}

SIGHT = {
    "full": np.eye(3),
    "without red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "without blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)

# CIELAB's distance at which two colours are no longer taken for shades of one, even in a thin line.
FAR_ENOUGH = 12


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def as_seen(colour: str, sight: str) -> np.ndarray:
    """A colour in CIELAB as somebody with this sight sees it."""
    scaled = TO_XYZ @ np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1) / WHITE
    x, y, z = np.where(scaled > 216 / 24389, np.cbrt(scaled), (24389 / 27 * scaled + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, two: str) -> float:
    light, dark = sorted((float(TO_XYZ[1] @ linear(colour)) for colour in (one, two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("palette", PALETTES)
def test_colours_are_told_apart_with_every_form_of_colour_blindness(palette: str, sight: str) -> None:
    for one, two in itertools.combinations(PALETTES[palette], 2):
        assert np.linalg.norm(as_seen(one, sight) - as_seen(two, sight)) > FAR_ENOUGH, (one, two)


def test_red_and_green_would_not_be_told_apart() -> None:
    assert np.linalg.norm(as_seen("#a86000", "without green") - as_seen("#6f7800", "without green")) < FAR_ENOUGH


@pytest.mark.parametrize(("palette", "ground", "least"), [("light", "#ffffff", 2.2), ("dark", "#141920", 3.0)])
def test_colours_stand_out_from_the_page(palette: str, ground: str, least: float) -> None:
    """WCAG asks 3:1 of graphics; on white two of Okabe and Ito's colours have less, and lines also have dashes."""
    assert min(contrast(colour, ground) for colour in PALETTES[palette]) > least


def test_no_two_of_many_lines_look_alike() -> None:
    looks = [(colour_of(index), dash_of(index)) for index in range(len(PALETTE) * len(DASHES))]
    assert len(set(looks)) == len(looks)

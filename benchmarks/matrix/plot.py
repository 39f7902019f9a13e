"""p99 over alone against BE's share of its rate alone, as SVG text. One mark a pair, one colour and shape a policy."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 440, 60, 50, 40, 170
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#999999')
X_TICKS = (0.9, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
BOUND = 1.05  # drawn as a line

Points = Mapping[str, Sequence[tuple[float, float]]]


def scatter(points: Points, title: str) -> str:
    """Both axes begin where all points fit; the ratios are on a logarithmic axis."""
    ratios = [ratio for some in points.values() for ratio, _ in some] or [1.0]
    shares = [share for some in points.values() for _, share in some] or [1.0]
    low, high = min(0.95, min(ratios) * 0.98), max(1.2, max(ratios) * 1.05)
    top = max(1.0, max(shares) * 1.05)

    def x_of(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(ratio / low) / math.log(high / low)

    def y_of(share: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share / top

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
             f'<text x="{LEFT}" y="22" font-size="14">{html.escape(title)}</text>']
    for tick in _apart(X_TICKS, low, high, x_of):
        parts.append(_line(x_of(tick), TOP, x_of(tick), HEIGHT - BOTTOM, '#ddd')
                     + f'<text x="{x_of(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for number in range(int(top * 5) + 1):
        share = number / 5
        parts.append(_line(LEFT, y_of(share), WIDTH - RIGHT, y_of(share), '#ddd')
                     + f'<text x="{LEFT - 6}" y="{y_of(share) + 4:.1f}" text-anchor="end">{share:g}</text>')
    parts.append(_line(x_of(BOUND), TOP, x_of(BOUND), HEIGHT - BOTTOM, '#c00'))
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">'
                 'LC p99 over alone (logarithmic; red: 1.05)</text>'
                 f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">'
                 'BE rate over its rate alone</text>')
    for number, (policy, some) in enumerate(sorted(points.items())):
        colour = COLOURS[number % len(COLOURS)]
        parts += [_mark(number, x_of(ratio), y_of(share), colour) for ratio, share in some]
        y = TOP + 10 + 20 * number
        parts.append(_mark(number, WIDTH - RIGHT + 20, y, colour)
                     + f'<text x="{WIDTH - RIGHT + 32}" y="{y + 4}">{html.escape(policy)} ({len(some)})</text>')
    return '\n'.join(parts) + '\n</svg>\n'


def _apart(ticks: Sequence[float], low: float, high: float, x_of: object, least: float = 26) -> list[float]:
    """The ticks in the range whose labels do not overlap."""
    assert callable(x_of)
    kept: list[float] = []
    for tick in ticks:
        if low <= tick <= high and (not kept or x_of(tick) - x_of(kept[-1]) >= least):
            kept.append(tick)
    return kept


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _mark(number: int, x: float, y: float, colour: str) -> str:
    shape = number % 3
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity="0.7"/>'
    if shape == 1:
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{colour}" fill-opacity="0.7"/>'
    return (f'<path d="M {x:.1f} {y - 5:.1f} l 5 9 l -10 0 z" fill="{colour}" fill-opacity="0.7"/>')

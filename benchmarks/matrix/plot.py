"""BE's share of its rate alone against p99 over alone, as SVG text: one colour and shape a condition.

A small mark is a pair, a large one the median over a condition's pairs; its label stands beside it. A label goes
where it covers least: of places around its mark, the one with the fewest marks and labels under it.
"""

from __future__ import annotations

import dataclasses
import html
import math
import statistics
from collections.abc import Callable, Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 520, 64, 20, 62, 52
LOW, HIGH = 0.66, 200.0  # of p99 over alone, with room for a label below 1; HIGH grows with the data
Y_TICKS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
BOUND = 1.05
INK, GRID, BOUND_COLOUR = '#222', '#e4e4e4', '#b00020'
# By condition: colours that people with colour blindness tell apart, dark enough for text on white.
STYLES = {'adaptive': ('#0060a8', 'circle'), 'streams': ('#5b5b5b', 'square'), 'priorities': ('#b34700', 'triangle'),
          'gated': ('#a83279', 'diamond'), 'green64': ('#00795b', 'square'), 'green96': ('#6f7d00', 'triangle')}
OTHERS = (('#1c8cc9', 'circle'), ('#8a5a00', 'circle'), ('#7a5cc0', 'circle'), ('#000000', 'circle'))
SMALL, LARGE = 3.2, 7.5
FONT, CHARACTER = 13, 7.7  # a bold character of a wide font
# What a label costs: its distance from its mark, and for each covered square unit of a pair, of a text or a large mark.
OVER_PAIR, OVER_TEXT = 4.0, 20.0


@dataclasses.dataclass(frozen=True)
class Cloud:
    """The pairs of a condition: (BE, p99 over alone)."""

    condition: str
    label: str
    points: Sequence[tuple[float, float]]

    @property
    def median(self) -> tuple[float, float]:
        return statistics.median(be for be, _ in self.points), statistics.median(ratio for _, ratio in self.points)


@dataclasses.dataclass(frozen=True)
class Box:
    """A rectangle of the picture, y downwards."""

    x1: float
    y1: float
    x2: float
    y2: float

    def covered(self, other: Box) -> float:
        return (max(0.0, min(self.x2, other.x2) - max(self.x1, other.x1))
                * max(0.0, min(self.y2, other.y2) - max(self.y1, other.y1)))


class Axes:
    """From figures to the picture: BE linear from 0 to 1 (or more), the ratio logarithmic."""

    def __init__(self, clouds: Sequence[Cloud]) -> None:
        points = [point for cloud in clouds for point in cloud.points]
        self.be_max = max([1.0, *(be * 1.02 for be, _ in points)])
        self.low = min([LOW, *(ratio * 0.95 for _, ratio in points)])
        self.high = max([HIGH, *(ratio * 1.1 for _, ratio in points)])

    def x(self, be: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * be / self.be_max

    def y(self, ratio: float) -> float:
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share


def scatter(clouds: Sequence[Cloud], title: str) -> str:
    """The whole picture, on opaque white: it looks the same on a dark page."""
    axes = Axes(clouds)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="{FONT}" fill="{INK}">',
             '<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="{LEFT}" y="24" font-size="16" font-weight="bold">{html.escape(title)}</text>',
             f'<text x="{LEFT}" y="45">Small marks: one pair; large: the median. Lower and further right is better.'
             '</text>', *_grid(axes)]
    taken = [(_around(axes.x(be), axes.y(ratio), SMALL), OVER_PAIR) for cloud in clouds for be, ratio in cloud.points]
    for number, cloud in enumerate(clouds):
        parts += [_mark(cloud, number, axes.x(be), axes.y(ratio), SMALL) for be, ratio in cloud.points]
    large = [(axes.x(cloud.median[0]), axes.y(cloud.median[1])) for cloud in clouds]
    parts += [_mark(cloud, number, *large[number], LARGE) for number, cloud in enumerate(clouds)]
    bound = Box(LEFT, axes.y(BOUND) - 1, WIDTH - RIGHT, axes.y(BOUND) + 1)
    taken += [(box, OVER_TEXT) for box in (*(_around(x, y, LARGE + 2) for x, y in large), _bound_label(axes)[1], bound)]
    for number, cloud in enumerate(clouds):
        box = _place(cloud.label, *large[number], taken)
        leader = _leader(large[number], box)
        taken += [(one, OVER_TEXT) for one in (box, *_along(leader))]
        parts.append(_label(cloud, _style(cloud, number)[0], leader, box))
    return '\n'.join(parts) + '\n</svg>\n'


def _grid(axes: Axes) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for tick in Y_TICKS:
        if axes.low <= tick <= axes.high:
            y = axes.y(tick)
            parts.append(_line(LEFT, y, right, y, GRID)
                         + f'<text x="{LEFT - 8}" y="{y + 4.5:.1f}" text-anchor="end">{tick:g}</text>')
    for number in range(int(axes.be_max * 5 + 1e-9) + 1):
        x = axes.x(number / 5)
        parts.append(_line(x, TOP, x, bottom, GRID)
                     + f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number / 5:g}</text>')
    text, box = _bound_label(axes)
    parts.append(_line(LEFT, axes.y(BOUND), right, axes.y(BOUND), BOUND_COLOUR, 1.5)
                 + f'<text x="{box.x2:.1f}" y="{box.y2 - 4:.1f}" text-anchor="end" fill="{BOUND_COLOUR}">{text}</text>')
    middle = (TOP + bottom) / 2
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">'
                 'BE throughput over its throughput alone</text>'
                 f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">'
                 'LC p99 over alone (logarithmic)</text>')
    return parts


def _bound_label(axes: Axes) -> tuple[str, Box]:
    text, y = f'bound {BOUND}', axes.y(BOUND)
    return text, Box(WIDTH - RIGHT - 4 - CHARACTER * len(text), y - FONT - 6, WIDTH - RIGHT - 4, y - 1)


def _place(text: str, x: float, y: float, taken: Sequence[tuple[Box, float]]) -> Box:
    """The box for a label: near its mark, inside the axes, over as little as can be."""
    width, height = CHARACTER * len(text), FONT + 4
    inside = Box(LEFT + 4, TOP + 2, WIDTH - RIGHT - 2, HEIGHT - BOTTOM - 2)
    best: tuple[float, Box] | None = None
    for distance in range(10, 200, 4):
        if best is not None and distance >= best[0]:
            break
        for step in range(48):
            angle = math.pi * step / 24
            # The nearest edge of the box is at the distance.
            left = x + distance * math.cos(angle) - width * (1 - math.cos(angle)) / 2
            top = y + distance * math.sin(angle) - height * (1 - math.sin(angle)) / 2
            box = Box(left, top, left + width, top + height)
            if inside.covered(box) < width * height - 1e-6:
                continue
            covering = [box, *_along(_leader((x, y), box))]
            cost = sum(weight * part.covered(other) for part in covering for other, weight in taken) + distance
            if best is None or cost < best[0]:
                best = cost, box
    return best[1] if best is not None else Box(x, y, x + width, y + height)


def _leader(mark: tuple[float, float], box: Box) -> tuple[float, float, float, float] | None:
    """A line from a mark to its label, if that is not beside it."""
    x, y = mark
    end = min(max(x, box.x1), box.x2), min(max(y, box.y1), box.y2)
    gap = math.dist(mark, end)
    if gap <= LARGE + 12:
        return None
    share = (LARGE + 2) / gap
    return x + (end[0] - x) * share, y + (end[1] - y) * share, *end


def _along(leader: tuple[float, float, float, float] | None) -> list[Box]:
    if leader is None:
        return []
    x1, y1, x2, y2 = leader
    return [_around(x1 + (x2 - x1) * at / 10, y1 + (y2 - y1) * at / 10, 2) for at in range(2, 11)]


def _label(cloud: Cloud, colour: str, leader: tuple[float, float, float, float] | None, box: Box) -> str:
    return (_line(*leader, colour) if leader else '') + (
        f'<text x="{(box.x1 + box.x2) / 2:.1f}" y="{box.y2 - 4:.1f}" text-anchor="middle" fill="{colour}" '
        'font-weight="bold" stroke="#fff" stroke-width="3" stroke-linejoin="round" paint-order="stroke">'
        f'{html.escape(cloud.label)}</text>')


def _style(cloud: Cloud, number: int) -> tuple[str, str]:
    return STYLES.get(cloud.condition, OTHERS[number % len(OTHERS)])


def _around(x: float, y: float, size: float) -> Box:
    return Box(x - size, y - size, x + size, y + size)


def _mark(cloud: Cloud, number: int, x: float, y: float, size: float) -> str:
    colour, shape = _style(cloud, number)
    edge = ' stroke="#fff" stroke-width="1.5"' if size == LARGE else ' fill-opacity="0.45"'
    draw: Callable[[float, float, float], str] = SHAPES[shape]
    return f'<{draw(x, y, size)} fill="{colour}"{edge}/>'


def _polygon(x: float, y: float, corners: Sequence[tuple[float, float]]) -> str:
    return f'polygon points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)}"'


SHAPES: dict[str, Callable[[float, float, float], str]] = {
    'circle': lambda x, y, r: f'circle cx="{x:.1f}" cy="{y:.1f}" r="{r}"',
    'square': lambda x, y, r: _polygon(x, y, [(-0.9 * r, -0.9 * r), (0.9 * r, -0.9 * r), (0.9 * r, 0.9 * r),
                                              (-0.9 * r, 0.9 * r)]),
    'triangle': lambda x, y, r: _polygon(x, y, [(0, -1.2 * r), (1.1 * r, 0.8 * r), (-1.1 * r, 0.8 * r)]),
    'diamond': lambda x, y, r: _polygon(x, y, [(0, -1.3 * r), (1.1 * r, 0), (0, 1.3 * r), (-1.1 * r, 0)])}


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1) -> str:
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width:g}"/>')

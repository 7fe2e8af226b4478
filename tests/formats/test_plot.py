"""Charts as SVG: what is drawn is what was measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from omnitide_cli.formats.plot import WIDTH, Bars, Chart, Figure, Lines, Value, number_text

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*charts: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(Figure("Title", charts).svg())


def boxes(root: ElementTree.Element, number: int) -> list[dict[str, float]]:
    """Bars of a series, without its place in the legend."""
    found = [e for e in root.iter(f"{SVG}rect") if e.get("class") == f"s{number}" and e.get("height") != "11.0"]
    return [{name: float(e.attrib[name]) for name in ("x", "y", "width", "height")} for e in found]


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_bars_are_as_long_as_their_values() -> None:
    root = drawn(Bars("ms", ["a", "b"], {"one": [Value(10), Value(40)], "two": [Value(20), None]}))
    one, two = boxes(root, 0), boxes(root, 1)
    assert [len(one), len(two)] == [2, 1]
    assert one[1]["width"] == pytest.approx(4 * one[0]["width"], abs=0.3)
    assert two[0]["width"] == pytest.approx(2 * one[0]["width"], abs=0.3)
    assert {"Title", "ms", "a", "b", "one", "two", "10", "40", "20", "–"} <= set(words(root))


def test_no_two_bars_overlap() -> None:
    values = [Value(float(n + 1)) for n in range(3)]
    root = drawn(Bars("ms", ["a", "b", "c"], {"one": values, "two": values}), Bars("s", ["a", "b", "c"], {"": values}))
    edges = sorted((box["y"], box["y"] + box["height"]) for number in (0, 1) for box in boxes(root, number))
    assert all(end <= begin for (_, end), (begin, _) in pairwise(edges))


def test_stacked_bars_stand_end_to_end_and_say_their_sum() -> None:
    root = drawn(Bars("s", ["a"], {"one": [Value(1)], "two": [Value(2.5)]}, stacked=True))
    (one,), (two,) = boxes(root, 0), boxes(root, 1)
    assert one["y"] == two["y"]
    assert two["x"] == pytest.approx(one["x"] + one["width"], abs=0.2)
    assert "3.5" in words(root)


def test_intervals_end_where_they_should() -> None:
    root = drawn(Bars("%", ["a"], {"one": [Value(50, 40, 70)]}))
    (box,) = boxes(root, 0)
    (whisker,) = root.iter(f"{SVG}path")
    line = re.match(r"M([\d.]+) [\d.]+H([\d.]+)", whisker.attrib["d"])
    assert line
    low, high = float(line[1]), float(line[2])
    assert low == pytest.approx(box["x"] + box["width"] * 0.8, abs=0.2)
    assert high == pytest.approx(box["x"] + box["width"] * 1.4, abs=0.2)


def test_lines_go_through_their_points() -> None:
    root = drawn(Lines("ms", "tokens", {"full": [(4096, 100), (16384, 300), (8192, 200)]}, log_x=True))
    (line,) = root.iter(f"{SVG}polyline")
    points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    (x1, y1), (x2, y2), (x3, y3) = points
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2), "a doubling is a doubling"
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert {"4,096", "8,192", "16,384", "tokens", "300"} <= set(words(root))


def test_lines_of_many_points_have_round_marks() -> None:
    root = drawn(Lines("MB", "hours", {"": [(n / 10, 200 + n % 3) for n in range(241)]}))
    assert {"0", "5", "10", "15", "20"} <= set(words(root))
    assert not list(root.iter(f"{SVG}circle"))


@pytest.mark.parametrize("values", [[0.0, 0.0], [-3.0, 5.0], [1e-9, 1e12]])
def test_any_values_stay_on_the_paper(values: list[float]) -> None:
    root = drawn(Bars("x", ["a", "b"], {"": [Value(value) for value in values]}))
    for box in boxes(root, 0):
        assert 0 <= box["x"] <= box["x"] + box["width"] <= WIDTH


def test_names_can_not_break_the_file() -> None:
    assert '<&> "x"' in words(drawn(Bars('<&> "x"', ["a"], {"": [Value(1)]})))


def test_numbers() -> None:
    assert list(_texts(0, 0.00012, 0.5, 12.345, 999.4, 1234.5, 1234567.0)) == [
        *("0", "1.2e-04", "0.5", "12.3", "999", "1,234", "1,234,567")
    ]


def _texts(*values: float) -> Iterator[str]:
    return map(number_text, values)

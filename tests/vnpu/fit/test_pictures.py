"""Pictures of plans: to scale, whole, and harmless whatever things are called."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cluster import C, card, hard, held_hard, held_soft, node, pod, soft
from tests.support.cluster_strategies import clusters, pods
from tests.support.examples import examples
from vnpu.fit import drawing, page, svg
from vnpu.fit.drawing import WIDTH, Box, draw
from vnpu.fit.occupancy import occupancy, totals
from vnpu.fit.plan import Workload, plan
from vnpu.fit.report import Report
from vnpu.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vnpu.cards import Node, Use
    from vnpu.request import PodRequest

SVG = "{http://www.w3.org/2000/svg}"
ROUNDED = 0.011
"""Numbers of an SVG have two decimals."""


def planned(nodes: Iterable[Node], used: Mapping[str, Use], pods: Iterable[PodRequest]) -> Report:
    cluster = Ledger(tuple(nodes), used, ())
    return Report(cluster, plan([Workload((one,)) for one in pods], cluster.nodes, used))


def within(inner: Box, outer: Box) -> bool:
    return (
        inner.x >= outer.x - 1e-6
        and inner.y >= outer.y
        and inner.x + inner.width <= outer.x + outer.width + 1e-6
        and inner.y + inner.height <= outer.y + outer.height
    )


def apart(one: Box, other: Box) -> bool:
    return (
        one.x + one.width <= other.x + 1e-6
        or other.x + other.width <= one.x + 1e-6
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
    )


@examples(60)
@given(st.data())
def test_everything_is_to_scale_and_nothing_overlaps(data: st.DataObject) -> None:
    of, nodes, used = data.draw(clusters())
    wanted = [data.draw(pods(of)) for _ in range(data.draw(st.integers(0, 6)))]
    report = planned(nodes, used, wanted)
    picture = draw(occupancy(report))
    assert not picture.left_out
    for box in picture.nodes:
        assert within(box.frame, Box(0, 0, WIDTH, picture.height))
        for one in box.cards:
            assert within(one.memory, box.frame)
            assert within(one.compute, box.frame)
            assert one.memory.width == pytest.approx(one.occupied.card.memory_mib / picture.mib_per_unit)
            for bar, parts in (
                (one.memory, [entry.memory for entry in one.slices]),
                (one.compute, [entry.compute for entry in one.slices]),
            ):
                assert all(within(part, bar) for part in parts)
                assert all(apart(left, right) for left, right in pairwise(parts))
            for entry, holding in zip(one.slices, one.occupied.holdings, strict=True):
                if one.occupied.status.use.memory_mib <= one.occupied.card.memory_mib:
                    assert entry.memory.width == pytest.approx(holding.use.memory_mib / picture.mib_per_unit)
            held = sum(holding.use.memory_mib for holding in one.occupied.holdings)
            assert held == one.occupied.status.use.memory_mib
    frames = [box.frame for box in picture.nodes]
    assert all(apart(one, other) for place, one in enumerate(frames) for other in frames[:place])


@examples(25)
@given(st.data())
def test_what_is_written_is_what_was_laid_out(data: st.DataObject) -> None:
    of, nodes, used = data.draw(clusters())
    report = planned(nodes, used, [data.draw(pods(of)) for _ in range(3)])
    picture = draw(occupancy(report))
    root = ET.fromstring("".join(svg.write(report)))
    assert root.tag == f"{SVG}svg"
    slices = [entry for box in picture.nodes for one in box.cards for entry in one.slices]
    drawn = [group for group in root.iter(f"{SVG}g") if _title(group) in {entry.hint for entry in slices}]
    assert [_title(group) for group in drawn] == [entry.hint for entry in slices]
    for group, entry in zip(drawn, slices, strict=True):
        bars = group.findall(f"{SVG}rect")
        boxes = [entry.memory, entry.compute][: len(bars)]
        for bar, box in zip(bars, boxes, strict=True):
            for name in ("x", "y", "width", "height"):
                assert abs(float(bar.attrib[name]) - getattr(box, name)) < ROUNDED


def _title(group: Any) -> str | None:
    title = group.find(f"{SVG}title")
    return None if title is None else title.text


HOSTILE = (
    "</title><script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "]]>&amp;&#0;<!--",
    "\x00\x1b[31m\ud800\u202e",
    "<svg onload=alert(1)>",
)


class Page(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_no_harm(name: str) -> None:
    nodes = [node(name, (card(0, node=name),), unsafe=name), node("good", (card(0, node=name + "2"),))]
    report = planned(nodes, {}, [pod(soft(8192, 10), name=name), pod(soft(99999), name=name + "-0")])
    picture, whole = "".join(svg.write(report)), "".join(page.write(report))
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(picture).iter()}
    assert tags <= {"svg", "title", "style", "defs", "pattern", "rect", "g", "text"}
    found = Page()
    found.feed(whole)
    assert not found.tags & {"script", "img", "iframe", "object", "link"}
    assert not [one for one in found.attributes if one.startswith("on") or one in {"href", "src"}]
    for text in (picture, whole):
        assert text.isprintable() or set(filter(lambda one: not one.isprintable(), text)) == {"\n"}
        text.encode()
    visible = re.sub(r"[^\w()=]", "", name)
    assert visible in re.sub(r"[^\w()=]", "", found.words) or "\x00" in name


@pytest.mark.parametrize("write", [svg.write, page.write])
def test_a_picture_needs_nothing_from_elsewhere(write: Any) -> None:
    report = planned([node("a")], {"a-0": held_soft(8192, 10)}, [pod(soft(8192, 10)), pod(hard())])
    text = "".join(write(report)).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|url\((?!#)|@import|<script|src=|href=", text)
    assert "prefers-color-scheme:dark" in text


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2's."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_colours_can_be_told_apart_from_their_ground() -> None:
    for colour in svg.PALETTE:
        assert contrast("#000000", colour) >= 4.5
        for ground in (svg.LIGHT, svg.DARK):
            assert contrast(ground["ground"], colour) >= 3
    for ground in (svg.LIGHT, svg.DARK):
        for ink in ("ink", "quiet", "bad", "warn"):
            assert contrast(ground["ground"], ground[ink]) >= 4.5


def test_marks_and_sums() -> None:
    cards = (card(0), card(1, healthy=False), card(2), card(3, slots=1))
    used = {"n-0": held_soft(16384, 25), "n-3": held_soft(99999, 100, slots=3)}
    report = planned([node(cards=cards, cordoned=["n-2"])], used, [pod(soft(16384, 25), name="app")])
    nodes = occupancy(report)
    assert [[holding.pod for holding in one.holdings] for one in nodes[0].cards] == [
        [None, "default/app"],
        [],
        [],
        [None],
    ]
    memory, compute = totals(nodes)
    assert memory == pytest.approx((32768 + 99999) / (4 * 65536))
    assert compute == pytest.approx(1.5 / 4)
    text = "".join(svg.write(report))
    for words in ("held already", "unhealthy", "cordoned", "of memory", "default/app"):
        assert words in text
    assert totals(occupancy(planned([], {}, []))) == (0.0, 0.0)
    assert "0 of 0 pods placed on 0 nodes with 0 cards" in "".join(page.write(planned([], {}, [])))


def test_hard_slices_show_their_ai_cores() -> None:
    report = planned([node("a", 1, soft=False)], {"a-0": held_hard("vir05_1c_16g")}, [pod(hard("vir10_3c_32g"))])
    (one,) = draw(occupancy(report)).nodes[0].cards
    assert [round(entry.compute.width / one.compute.width, 2) for entry in one.slices] == [0.25, 0.5]
    assert one.slices[1].hint == "default/pod: 32768 MiB, 10 of 20 AI cores"


@pytest.mark.parametrize(("cards", "columns"), [(1, 1), (8, 1), (16, 1), (17, 3), (160, 3), (161, 7), (1000, 7)])
def test_more_cards_are_drawn_smaller(cards: int, columns: int) -> None:
    report = planned([node(f"n{number}", 1) for number in range(cards)], {}, [])
    frames = [box.frame for box in draw(occupancy(report)).nodes]
    assert len({frame.x for frame in frames}) == min(cards, columns)
    assert max(frame.x + frame.width for frame in frames) <= WIDTH


def test_of_very_many_nodes_the_first_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_DRAWN", 20)
    report = planned([node(f"n{number}", 8, C) for number in range(5)], {}, [pod(soft(1, count=2, of=C))])
    text = "".join(svg.write(report))
    assert "and 3 more nodes, not drawn" in text
    assert ">n1: 8 x Ascend910C<" in text
    assert ">n2: 8 x Ascend910C<" not in text

"""Nodes written down by hand: the inventory file, and the node of ``--card``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vnpu import names
from vnpu.cards import Card, Node
from vnpu.errors import ABSENT, ConfigError, did_you_mean, item
from vnpu.fields import Fields, Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vnpu.chips import Chip, ChipTable

MOST_CARDS: Final = 1024
"""Cards of one node; real ones have up to 16."""

_NODE_KEYS: Final = ("name", "chip", "cards", "soft", "healthy", "slots", "labels")


class Entry(NamedTuple):
    """A node of an inventory, and its labels; None where the inventory says nothing of them."""

    node: Node
    labels: Mapping[str, str] | None


def parse(document: Any, chips: ChipTable) -> tuple[Entry, ...]:
    """The nodes of an inventory: ``nodes: [{name, chip, cards, soft: false, healthy: true, slots, labels}]``.

    Cards are called ``<node>-<index>``. Slots default to :data:`vnpu.names.SOFT_SLOTS` on a soft node, else to
    template arithmetic.

    Args:
        document: the mapping that the file holds.
        chips: the chips that may be named.

    Raises:
        ConfigError: the first field that cannot be used.
    """
    top = Fields(document)
    top.refuse_unknown(("nodes",))
    entries = top.get("nodes")
    if not isinstance(entries, list):
        raise ConfigError("nodes", entries, "a list of nodes is expected")
    return tuple(_entry(Fields(entry, item("nodes", index)), chips) for index, entry in enumerate(entries))


def _entry(fields: Fields, chips: ChipTable) -> Entry:
    fields.refuse_unknown(_NODE_KEYS)
    soft = fields.boolean("soft")
    chip = find_chip(fields.name("chip"), chips, fields.key("chip"))
    node = make_node(
        fields.name("name", form=Form.SUBDOMAIN),
        chip,
        fields.number("cards", low=1, high=MOST_CARDS),
        soft=soft,
        healthy=fields.boolean("healthy", default=True),
        slots=fields.number("slots", low=1, default=default_slots(chip, soft=soft)),
    )
    return Entry(node, _labels(fields))


def _labels(fields: Fields) -> Mapping[str, str] | None:
    labels = fields.get("labels")
    if labels in (ABSENT, None):
        return None
    texts = Fields(labels, fields.key("labels"))
    return {label: texts.text(label) for label in labels}


def make_node(name: str, chip: Chip, cards: int, *, soft: bool, healthy: bool = True, slots: int) -> Node:
    """A node of ``cards`` equal cards, called ``<name>-0``, ``<name>-1``, ..."""
    return Node(
        name,
        tuple(
            Card(
                uuid=f"{name}-{index}",
                index=index,
                chip=chip.common_word,
                memory_mib=chip.memory_allocatable_mib,
                slots=slots,
                ai_core=chip.ai_core,
                ai_cpu=chip.ai_cpu,
                healthy=healthy,
            )
            for index in range(cards)
        ),
        soft=soft,
        hard_because="" if soft else "the inventory does not say soft: true",
    )


def default_slots(chip: Chip, *, soft: bool) -> int:
    """Slices that a card offers where nobody says how many."""
    return names.SOFT_SLOTS if soft else chip.hard_slots


def find_chip(common_word: str, chips: ChipTable, path: str) -> Chip:
    """The chip of that name.

    Raises:
        ConfigError: the chip table does not know it.
    """
    chip = chips.get(common_word)
    if chip is None:
        known = [chip.common_word for chip in chips]
        raise ConfigError(path, common_word, f"known chips are {', '.join(known)}{did_you_mean(common_word, known)}")
    return chip

"""The settings of the device plugin: one YAML mapping for all nodes. HAMi's ``node-config.yaml`` is one of them.

``softSlots`` is ours; ``nodes`` is HAMi's list. What an entry leaves out it leaves alone: only an entry that says
``hami-vnpu-core`` changes the mode of its node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.annotations.fields import UUID_ALLOWED, is_word
from vnpu.errors import ABSENT, ConfigError, item
from vnpu.fields import Fields
from vnpu.quantity import is_whole

if TYPE_CHECKING:
    from interceptor.devices import Device

_KEYS: Final = ("softSlots", "nodes")
_NODE_KEYS: Final = ("name", names.SOFT_NODE, "vDeviceCount", "filterDevices")
_FILTER_KEYS: Final = ("uuid", "index")
_MOST_SLOTS: Final = 1000
"""Of one card: kubelet is told of each slot of each card in one message."""


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What is configured for one node.

    Attributes:
        soft_slots: slices that a card offers on a soft node.
        slots: slices that a card offers in either mode, None for soft_slots or template arithmetic.
        soft: whether soft slices are wanted here, None where the device config decides.
        hidden_uuids: chips that are not offered.
        hidden_cards: cards none of whose chips is offered, as ``npu-smi -i`` counts.
    """

    soft_slots: int = names.SOFT_SLOTS
    slots: int | None = None
    soft: bool | None = None
    hidden_uuids: frozenset[str] = frozenset()
    hidden_cards: frozenset[int] = frozenset()

    def offers(self, device: Device) -> bool:
        """Whether a chip is offered at all."""
        return device.uuid not in self.hidden_uuids and device.card not in self.hidden_cards


def parse(document: Any, node: str) -> NodeSettings:
    """The settings of a node in a parsed YAML document; an empty document means the defaults.

    Raises:
        ConfigError: the first key that nobody knows, value that is not allowed, or node that stands twice.
    """
    fields = Fields({} if document is None else document)
    fields.refuse_unknown(_KEYS)
    soft_slots = fields.number("softSlots", low=1, high=_MOST_SLOTS, default=names.SOFT_SLOTS)
    found = NodeSettings(soft_slots)
    seen: set[str] = set()
    for index, entry in enumerate(_list(fields, "nodes")):
        one = Fields(entry, item("nodes", index))
        one.refuse_unknown(_NODE_KEYS)
        name = one.name("name")
        if name in seen:
            raise ConfigError(one.key("name"), name, "each node may stand once")
        seen.add(name)
        settings = _node(one, soft_slots)
        if name == node:
            found = settings
    return found


def _node(fields: Fields, soft_slots: int) -> NodeSettings:
    hidden = Fields(
        {} if _unsaid(fields, "filterDevices") else fields.get("filterDevices"), fields.key("filterDevices")
    )
    hidden.refuse_unknown(_FILTER_KEYS)
    uuids = hidden.names("uuid", ())
    for index, uuid in enumerate(uuids):
        if not is_word(uuid):
            raise ConfigError(item(hidden.key("uuid"), index), uuid, UUID_ALLOWED)
    cards = _list(hidden, "index")
    for index, card in enumerate(cards):
        if not is_whole(card):
            raise ConfigError(item(hidden.key("index"), index), card, "the number of a card is expected")
    return NodeSettings(
        soft_slots,
        # HAMi's 0 is "not said".
        fields.number("vDeviceCount", low=0, high=_MOST_SLOTS, default=0) or None,
        None if _unsaid(fields, names.SOFT_NODE) else fields.boolean(names.SOFT_NODE),
        frozenset(uuids),
        frozenset(cards),
    )


def _unsaid(fields: Fields, name: str) -> bool:
    return fields.get(name) in (ABSENT, None)


def _list(fields: Fields, name: str) -> list[Any]:
    value = [] if _unsaid(fields, name) else fields.get(name)
    if not isinstance(value, list):
        raise ConfigError(fields.key(name), value, "a list is expected")
    return value

"""``hami.io/node-register-<chip>``: the cards of one chip that a node has.

Written as JSON by the device plugin for HAMi's scheduler and Volcano. The comma text of older plugins is read too;
Volcano no longer does. What a card has of AI cores and AI CPUs comes from the chip table: ``devcore`` is the
number of AI cores on a hard node but 100 on a soft one, where it stands for percent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vnpu.annotations import gojson
from vnpu.annotations.fields import UUID_ALLOWED, is_word, number, text
from vnpu.cards import WHOLE_CORE, Card
from vnpu.errors import AnnotationError, item, key
from vnpu.quantity import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vnpu.chips import Chip

_FIELDS: Final = ("id", "index", "count", "devmem", "devcore", "type", "health", "custominfo")
_NETWORK: Final = "NetworkID"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_SHORT_LEGACY: Final = 7
_LONG_LEGACY: Final = 9


class NoCardsError(AnnotationError):
    """The node says that it has no cards of the chip."""


def is_legacy(value: Any) -> bool:
    """Whether the annotation is the comma text of older device plugins."""
    return isinstance(value, str) and not value.lstrip().startswith(("[", "{", "null"))


def decode(value: Any, chip: Chip, path: str = "") -> tuple[Card, ...]:
    """The cards in the annotation, in its order.

    Args:
        value: the annotation's value.
        chip: the chip that the annotation is about; each card's type must be its common word.
        path: the annotation, for the error.

    Raises:
        NoCardsError: the list is empty.
        AnnotationError: text that cannot be decoded, a card of another chip, a UUID or an index that stands twice.
    """
    cards = _decode_text(text(value, path), chip, path) if is_legacy(value) else _decode_json(value, chip, path)
    if not cards:
        raise NoCardsError(path, value, f"the node has no {chip.common_word}: at least one card is expected")
    _check_unique(cards, path, "uuid", lambda card: card.uuid)
    _check_unique(cards, path, "index", lambda card: card.index)
    return tuple(cards)


def _decode_json(value: Any, chip: Chip, path: str) -> list[Card]:
    cards = []
    for index, fields in enumerate(gojson.objects(value, _FIELDS, path)):
        place = item(path, index)
        gojson.whole(fields, "devcore", place)
        cards.append(
            _card(
                chip,
                place,
                uuid=gojson.string(fields, "id", place),
                index=gojson.whole(fields, "index", place),
                slots=gojson.whole(fields, "count", place),
                memory_mib=gojson.whole(fields, "devmem", place),
                kind=gojson.string(fields, "type", place),
                healthy=gojson.boolean(fields, "health", place),
                network_id=_network_id(fields.get("custominfo"), key(place, "custominfo")),
            )
        )
    return cards


def _network_id(custom: Any, path: str) -> int | None:
    if custom is None:
        return None
    if not isinstance(custom, dict):
        raise AnnotationError(path, custom, "an object is expected")
    value = custom.get(_NETWORK)
    if value is None:
        return None
    # Go reads every number here as a float, so 1.0 is as good as 1.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value != value // 1 or not 0 <= value <= INT32_MAX:
        raise AnnotationError(key(path, _NETWORK), value, "the number of a group of cards is expected, such as 0 or 1")
    return int(value)


def _decode_text(value: str, chip: Chip, path: str) -> list[Card]:
    """``id,count,mem,core,type,numa,health[,index,mode]:`` for every card."""
    if ":" not in value:
        raise AnnotationError(path, value, "a JSON array of cards is expected")
    cards: list[Card] = []
    for segment in value.split(":"):
        if not segment.strip():
            continue
        place = item(path, len(cards))
        fields = [field.strip() for field in segment.split(",")]
        if len(fields) not in {_SHORT_LEGACY, _LONG_LEGACY}:
            raise AnnotationError(place, segment, "id,count,mem,core,type,numa,health and maybe index,mode is expected")
        uuid, slots, memory, core, kind, _, health = fields[:_SHORT_LEGACY]
        number(core, place)
        cards.append(
            _card(
                chip,
                place,
                uuid=uuid,
                # Upstream gives index 0 to every card of the short form, which would make them all one place.
                index=number(fields[7], place) if len(fields) == _LONG_LEGACY else len(cards),
                slots=number(slots, place),
                memory_mib=number(memory, place),
                kind=kind,
                healthy=_truth(health, place),
                network_id=None,
            )
        )
    return cards


def _truth(word: str, path: str) -> bool:
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise AnnotationError(path, word, "true or false is expected")


def _card(
    chip: Chip,
    path: str,
    *,
    uuid: str,
    index: int,
    slots: int,
    memory_mib: int,
    kind: str,
    healthy: bool,
    network_id: int | None,
) -> Card:
    if not is_word(uuid):
        raise AnnotationError(key(path, "id"), uuid, UUID_ALLOWED)
    if kind != chip.common_word:
        raise AnnotationError(key(path, "type"), kind, f"{chip.common_word} is expected in its own annotation")
    return Card(uuid, index, kind, memory_mib, slots, chip.ai_core, chip.ai_cpu, healthy, network_id)


def _check_unique(cards: Iterable[Card], path: str, name: str, part: Callable[[Card], str | int]) -> None:
    seen: set[str | int] = set()
    for place, card in enumerate(cards):
        value = part(card)
        if value in seen:
            raise AnnotationError(key(item(path, place), name), value, f"each {name} may stand once on a node")
        seen.add(value)


def encode(cards: Iterable[Card], chip: Chip, *, soft: bool) -> str:
    """The JSON for the cards of one node, byte for byte as the device plugin writes it.

    (Plugin 1.4 adds an empty ``devicepairscore`` to each card, which carries nothing and that nobody reads.)

    Args:
        cards: in the order in which they are listed.
        chip: what they are.
        soft: whether the node takes soft slices; their compute counts in percent.

    Raises:
        AnnotationError: a card of another chip, or one whose UUID device text could not carry.
    """
    entries = []
    for place, card in enumerate(cards):
        if card.chip != chip.common_word:
            raise AnnotationError(item("", place), card.chip, f"{chip.common_word} is expected")
        if not is_word(card.uuid):
            raise AnnotationError(item("", place), card.uuid, UUID_ALLOWED)
        fields = {
            "id": card.uuid,
            "index": card.index,
            "count": card.slots,
            "devmem": card.memory_mib,
            "devcore": WHOLE_CORE if soft else chip.ai_core,
            "type": card.chip,
            "health": card.healthy,
            "custominfo": None if card.network_id is None else {_NETWORK: card.network_id},
        }
        entries.append({name: value for name, value in fields.items() if value})
    return gojson.dumps(entries)

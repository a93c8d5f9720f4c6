"""What a container gets for its entry: its mode, its quota file, its environment and mounts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from interceptor import quota
from vnpu import names
from vnpu.admission.settings import Share
from vnpu.allocation import ContainerResponse, HostPaths, container_response
from vnpu.errors import RequestError
from vnpu.mode import Mode
from vnpu.objects import annotations_of, mapping_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from interceptor.device_plugin.inventory import Inventory
    from vnpu.annotations.allocated import AllocatedCard
    from vnpu.chips import Chip
    from vnpu.containers import Container


def mode_of(pod: Mapping[str, Any], cards: Sequence[AllocatedCard], chip: Chip) -> Mode:
    """How a container's cards are to be shared.

    The pod's mark decides; to schedulers every mark but ``hami-core`` is hard. A pod without a mark passed no webhook
    of ours. HAMi's scheduler sends such pods to soft nodes as well; what it booked tells what they are: a slice with a
    core, or a part of a card without a template, can only be soft.
    """
    mark = annotations_of(pod).get(names.MODE)
    if mark:
        return Mode.SOFT if mark == Mode.SOFT.value else Mode.HARD
    if any(card.template is not None for card in cards):
        return Mode.HARD
    part = any(card.core or 0 < (card.memory_mib or 0) < chip.memory_allocatable_mib for card in cards)
    return Mode.SOFT if part else Mode.HARD


def is_ceiling(pod: Mapping[str, Any], container: Container) -> bool:
    """Whether the core of a soft container is a ceiling too: its annotation says so, else what admission wrote."""
    share = annotations_of(pod).get(names.SHARE)
    if share is not None:
        return bool(share == Share.CEILING.value)
    entries = container.raw.get("env")
    return isinstance(entries, list) and any(
        isinstance(entry, dict) and entry.get("name") == names.ENV_CEILING and entry.get("value") == "1"
        for entry in entries
    )


def quota_text(cards: Sequence[AllocatedCard], *, ceiling: bool) -> str:
    """The quota file of a soft container, which the limiter believes before the environment.

    Raises:
        ConfigError: amounts that the limiter would refuse.
    """
    content: dict[str, int | bool] = {"memory_mib": cards[0].memory_mib or 0}
    if cards[0].core:
        content |= {"priority": cards[0].core}
    if ceiling:
        content |= {"fixed_share_ratio": True}
    text = json.dumps(content)
    quota.parse_quota_file(text, names.QUOTA_FILE)
    return text + "\n"


def respond(
    pod: Mapping[str, Any],
    container: Container,
    cards: Sequence[AllocatedCard],
    chip: Chip,
    inventory: Inventory,
    host: HostPaths,
) -> tuple[ContainerResponse, str]:
    """What kubelet adds to a container, and the text of its quota file, ``""`` for none.

    Args:
        pod: the Pod as JSON.
        container: one of its containers.
        cards: the container's own cards.
        chip: what they are.
        inventory: what this node offers now.
        host: what a soft container gets of the host.

    Raises:
        FieldError: this node cannot give what was booked; the message says why.
    """
    path = f"container {container.name}"
    for card in cards:
        offered = inventory.card(card.uuid)
        if offered is not None and offered.fault:
            raise RequestError(path, card.uuid, f"this card cannot be used: {offered.fault}")
    mode = mode_of(pod, cards, chip)
    text = ""
    if mode is Mode.SOFT:
        if not inventory.soft:
            why = inventory.refused or "its configuration says so"
            raise RequestError(path, mode.value, f"no soft slice may live on this node: {why}")
        text = quota_text(cards, ceiling=is_ceiling(pod, container))
    else:
        _check_hard(cards, chip, path)
    uid = mapping_at(pod, "metadata").get("uid", "")
    response = container_response(cards, inventory.physical_ids, mode, pod_uid=uid, container=container.name, host=host)
    return response, text


def _check_hard(cards: Sequence[AllocatedCard], chip: Chip, path: str) -> None:
    """A part of a card without a template would come as the whole card, and hold it with others."""
    for card in cards:
        if card.template is None and 0 < (card.memory_mib or 0) < chip.memory_allocatable_mib:
            raise RequestError(
                path,
                card.memory_mib,
                f"a hard slice of card {card.uuid} needs a template, and none was told: only the whole card has none",
            )

"""What was seen of a cluster at one moment, and what could not be."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from vnpu.errors import VnpuError
from vnpu.kube import NODES, PODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from vnpu.kube import Object, Resource

PUBLIC_PARTS: Final = ("tls.crt", "ca.crt")
"""What is kept of a Secret: certificates. Keys are dropped where they are read."""
_READ: Final = "where the API server forbids it, let this account get and list it"
_LONGEST_UNIX: Final = 11
"""Digits: until the year 5138."""


class UnseenError(VnpuError):
    """Something could not be looked at.

    Attributes:
        what: kind, and name where it is about one object.
        why: the API server's words, or what else was in the way.
        remedy: what to do, so that it can be looked at.
    """

    def __init__(self, what: str, why: str, remedy: str = "see to what is missing, and look again") -> None:
        super().__init__(what, why)
        self.what = what
        self.why = why
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


class UnusableError(UnseenError):
    """It is there, and cannot be used."""


@dataclass(frozen=True, slots=True)
class Call:
    """What came of the dry creation of a pod.

    Attributes:
        pod: as it would have been stored, None where it was refused.
        status: the HTTP status of a refusal.
        message: the server's words for it.
    """

    pod: Object | None = None
    status: int = 0
    message: str = ""


@dataclass(frozen=True)
class Snapshot:
    """A cluster at one moment.

    Attributes:
        now: when, with its zone.
        objects: by kind.
        unseen: why something could not be looked at, by kind, or by kind and name of one object.
        calls: dry creations of pods, by what was tried; empty where none was.
    """

    now: datetime
    objects: Mapping[str, Sequence[Object]]
    unseen: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, Call] = field(default_factory=dict)

    def of(self, resource: Resource) -> Sequence[Object]:
        """All objects of a kind.

        Raises:
            UnseenError: they could not be looked at.
        """
        if resource.kind in self.unseen:
            raise UnseenError(resource.kind, self.unseen[resource.kind], _READ)
        return self.objects.get(resource.kind, ())

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """One object, None where it is not there.

        Raises:
            UnseenError: it could not be looked at.
        """
        full = named(resource, name, namespace)
        if full in self.unseen:
            raise UnseenError(full, self.unseen[full], _READ)
        for one in self.of(resource):
            if one["metadata"]["name"] == name and one["metadata"].get("namespace", "") == namespace:
                return one
        return None

    @property
    def nodes(self) -> Sequence[Object]:
        """All nodes."""
        return self.of(NODES)

    @property
    def pods(self) -> Sequence[Object]:
        """The pods that matter here: those that have to do with NPUs, and those of device plugins."""
        return self.of(PODS)


def named(resource: Resource, name: str, namespace: str = "") -> str:
    """``Kind name`` or ``Kind namespace/name``."""
    return f"{resource.kind} {namespace}/{name}" if namespace else f"{resource.kind} {name}"


def label(obj: Object) -> str:
    """The same, of an object."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    return f"{obj['kind']} {namespace}/{metadata['name']}" if namespace else f"{obj['kind']} {metadata['name']}"


def dig(value: Any, *steps: str | int) -> Any:
    """What stands at the end of these steps, None where one of them leads nowhere."""
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def items(value: Any) -> list[Any]:
    """The mappings in a list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def moment(text: Any) -> datetime | None:
    """The time that the API server wrote, None where there is none."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found


def unix(text: Any) -> datetime | None:
    """The time that unix seconds in a text mean, None where it is no such text."""
    plain = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _LONGEST_UNIX
    return datetime.fromtimestamp(int(text), UTC) if plain else None


def span(age: timedelta) -> str:
    """A span of time in the largest unit that leaves a whole number of at least two."""
    seconds = int(age.total_seconds())
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} seconds"


def without_keys(secret: Object) -> Object:
    """A Secret with nothing secret in it."""
    data = dig(secret, "data") or {}
    return {**secret, "data": {name: data[name] for name in PUBLIC_PARTS if name in data}}

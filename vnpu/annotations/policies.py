"""The annotations by which a user steers placement: policies, scoring weights, and which cards may be taken.

Admission checks them when the pod is created, and fit follows them: both read them here, so that no malformed one
waits for a scheduler to trip over it. The keys and their grammar are HAMi's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

from vnpu import names
from vnpu.annotations.fields import is_word, text
from vnpu.errors import AnnotationError, shown
from vnpu.objects import annotation_path
from vnpu.quantity import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_STEERING: Final = frozenset({names.NODE_POLICY, names.CARD_POLICY, names.SCORING_WEIGHTS})


class NodePolicy(StrEnum):
    """Which node is taken first, and whether one where cards of the pod's chips are in use is taken (``mutex``: never).

    As with cards, ``mutex`` keeps the pod from joining others, and not others from joining it.
    """

    BINPACK = "binpack"
    SPREAD = "spread"
    MUTEX = "mutex"


class CardPolicy(StrEnum):
    """Which card of a node is taken first, and whether a card in use is taken at all (``mutex``: never)."""

    BINPACK = "binpack"
    SPREAD = "spread"
    MUTEX = "mutex"
    NUMA = "numa"


@dataclass(frozen=True, slots=True)
class ScoringWeights:
    """How much each share of a card counts in its score; whole numbers, at least one of them above 0."""

    slot: int = 1
    core: int = 1
    memory: int = 1


@dataclass(frozen=True, slots=True)
class PodPolicies:
    """What a pod says about its placement, None where it says nothing.

    Attributes:
        node: the node policy.
        card: the card policies, compared one after the other.
        weights: the weights of a card's score.
    """

    node: NodePolicy | None = None
    card: tuple[CardPolicy, ...] | None = None
    weights: ScoringWeights | None = None


@dataclass(frozen=True, slots=True)
class CardChoice:
    """Which cards of a chip a pod may take.

    Attributes:
        use: only these UUIDs; empty for all.
        no_use: none of these UUIDs, also where ``use`` names them.
    """

    use: frozenset[str] = frozenset()
    no_use: frozenset[str] = frozenset()

    def allows(self, uuid: str) -> bool:
        """Whether the card may be taken."""
        return uuid not in self.no_use and (not self.use or uuid in self.use)


ANY_CARD: Final = CardChoice()
NO_POLICIES: Final = PodPolicies()

_Word = TypeVar("_Word", NodePolicy, CardPolicy)


def pod_policies(annotations: Mapping[str, Any]) -> PodPolicies:
    """The policies and weights in the annotations of a pod.

    Raises:
        AnnotationError: the first annotation that is malformed.
    """
    if not (_STEERING & annotations.keys()):
        return NO_POLICIES
    node = card = weights = None
    if names.NODE_POLICY in annotations:
        node = node_policy(annotations[names.NODE_POLICY], annotation_path(names.NODE_POLICY))
    if names.CARD_POLICY in annotations:
        card = card_policy(annotations[names.CARD_POLICY], annotation_path(names.CARD_POLICY))
    if names.SCORING_WEIGHTS in annotations:
        weights = scoring_weights(annotations[names.SCORING_WEIGHTS], annotation_path(names.SCORING_WEIGHTS))
    return PodPolicies(node, card, weights)


def card_choice(annotations: Mapping[str, Any], common_word: str) -> CardChoice:
    """Which cards of the chip the pod may take.

    Raises:
        AnnotationError: one of the two lists is malformed.
    """
    use_key, no_use_key = names.use_uuid(common_word), names.no_use_uuid(common_word)
    if use_key not in annotations and no_use_key not in annotations:
        return ANY_CARD
    return CardChoice(
        uuid_list(annotations.get(use_key, ""), annotation_path(use_key)),
        uuid_list(annotations.get(no_use_key, ""), annotation_path(no_use_key)),
    )


def faults(annotations: Mapping[str, Any], common_words: Iterable[str]) -> Iterator[AnnotationError]:
    """Everything that is malformed in the annotations of a pod that asks for these chips."""
    readers: list[tuple[str, Callable[[Any, str], object]]] = [
        (names.NODE_POLICY, node_policy),
        (names.CARD_POLICY, card_policy),
        (names.SCORING_WEIGHTS, scoring_weights),
    ]
    for word in common_words:
        readers += (names.use_uuid(word), uuid_list), (names.no_use_uuid(word), uuid_list)
    for name, read in readers:
        if name in annotations:
            try:
                read(annotations[name], annotation_path(name))
            except AnnotationError as fault:
                yield fault


def node_policy(value: Any, path: str = "") -> NodePolicy:
    """One word: ``binpack``, ``spread`` or ``mutex``.

    Raises:
        AnnotationError: anything else.
    """
    return _word(text(value, path), value, path, NodePolicy)


def card_policy(value: Any, path: str = "") -> tuple[CardPolicy, ...]:
    """A comma list of ``binpack``, ``spread``, ``mutex`` and ``numa``; spaces around the words do not count.

    Raises:
        AnnotationError: another word, an empty one, or one that stands twice.
    """
    policies = tuple(_word(word.strip(), value, path, CardPolicy) for word in text(value, path).split(","))
    if len(set(policies)) != len(policies):
        raise AnnotationError(path, value, "each policy may stand once")
    return policies


def scoring_weights(value: Any, path: str = "") -> ScoringWeights:
    """The text ``slot=1,core=1,memory=1``: all three, in any order, whole numbers from 0, not all 0.

    Raises:
        AnnotationError: anything else.
    """
    found: dict[str, int] = {}
    for part in text(value, path).split(","):
        name, _, digits = (side.strip() for side in part.partition("="))
        legal = digits.isascii() and digits.isdigit() and len(digits) <= len(str(INT32_MAX))
        if name in found or name not in ScoringWeights.__slots__ or not legal or int(digits) > INT32_MAX:
            break
        found[name] = int(digits)
    else:
        if len(found) == len(ScoringWeights.__slots__) and any(found.values()):
            return ScoringWeights(**found)
    raise AnnotationError(
        path, value, "allowed are all three of slot, core and memory with whole numbers, such as slot=1,core=1,memory=1"
    )


def uuid_list(value: Any, path: str = "") -> frozenset[str]:
    """A comma list of card UUIDs; spaces around them and one comma at the end do not count, blank text names none.

    Raises:
        AnnotationError: an empty entry, or one that no card can be called.
    """
    listed = text(value, path)
    if not listed.strip():
        return frozenset()
    entries = [entry.strip() for entry in listed.split(",")]
    if not entries[-1] and len(entries) > 1:
        entries.pop()
    for entry in entries:
        if not is_word(entry):
            raise AnnotationError(path, value, f"a comma list of card UUIDs is expected, and {shown(entry)} is none")
    return frozenset(entries)


def _word(word: str, value: Any, path: str, kind: type[_Word]) -> _Word:
    try:
        return kind(word)
    except ValueError:
        raise AnnotationError(path, value, f"allowed are {_listed(kind)}") from None


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}"

"""Which node and which card is taken first, where several would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu.annotations.policies import CardPolicy, NodePolicy, ScoringWeights, pod_policies

if TYPE_CHECKING:
    from collections.abc import Mapping


_SIGNS: Final[Mapping[str, int]] = {"binpack": -1, "spread": 1}

EVEN_WEIGHTS: Final = ScoringWeights()
"""Slots, compute and memory count alike."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How a pod is placed.

    Attributes:
        node: the fullest node first (``binpack``), the emptiest (``spread``), or only nodes where nobody uses a card of
            the chips that the pod asks for, in their order (``mutex``).
        card: words compared one after the other. ``mutex`` takes only cards that nobody uses; ``numa`` changes
            nothing, as Ascend cards are registered without a NUMA node.
        weights: how much slots, compute and memory count in a card's score.
    """

    node: NodePolicy = NodePolicy.BINPACK
    card: tuple[CardPolicy, ...] = (CardPolicy.SPREAD,)
    weights: ScoringWeights = EVEN_WEIGHTS

    def for_pod(self, annotations: Mapping[str, Any]) -> Policy:
        """The policy of a pod: what its annotations say, and this one where they say nothing.

        Raises:
            AnnotationError: an annotation is malformed.
        """
        own = pod_policies(annotations)
        if own.node is None and own.card is None and own.weights is None:
            return self
        return Policy(own.node or self.node, own.card or self.card, own.weights or self.weights)

    @property
    def unused_cards_only(self) -> bool:
        """Whether the pod takes only cards that nobody uses."""
        return CardPolicy.MUTEX in self.card

    @property
    def unused_nodes_only(self) -> bool:
        """Whether the pod takes only nodes where nobody uses a card of its chips."""
        return self.node is NodePolicy.MUTEX

    @property
    def node_sign(self) -> int:
        """The factor that makes the load of a node its rank, lowest first: 1 emptiest, -1 fullest, 0 no matter."""
        return _SIGNS.get(self.node, 0)

    @property
    def card_sign(self) -> int:
        """The same for the score of a card.

        A second word could only order cards with equal scores, which it cannot tell apart either.
        """
        return next((_SIGNS[word] for word in self.card if word in _SIGNS), 0)


DEFAULT_POLICY: Final = Policy()
"""HAMi's defaults: fill nodes one by one, spread over the cards of a node."""

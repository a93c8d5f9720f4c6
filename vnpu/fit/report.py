"""What the planner reports: the plan of all that was asked, refusals of admission among it, and explanations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from vnpu.errors import InputError, did_you_mean, few
from vnpu.fit.admit import full_name
from vnpu.fit.answers import Unplaced
from vnpu.fit.plan import plan
from vnpu.fit.policy import Policy
from vnpu.fit.rules import explain
from vnpu.request import PodRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from vnpu.annotations.policies import CardPolicy, NodePolicy
    from vnpu.fit.admit import Batch
    from vnpu.fit.answers import CardVerdict, Plan
    from vnpu.fit.plan import Workload
    from vnpu.ledger import Ledger


_NOT_PLANNED: Final = "it asks for no NPU and is left out of the plan"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Card by card, what speaks against a pod when its turn comes: with all that was placed before it in place.

    Attributes:
        pod: the pod.
        node: where it was placed, None where it was not.
        verdicts: per node name; none for a pod that was not tried.
        message: why it was not placed, ``""`` where it was.
    """

    pod: PodRequest
    node: str | None
    verdicts: Mapping[str, tuple[CardVerdict, ...]]
    message: str


@dataclass(frozen=True, slots=True)
class Change:
    """What nodes that are not there yet would change.

    Attributes:
        nodes: their names.
        more: pods that are placed because of them.
        fewer: pods that would be placed without them, and are not: others took their room.
    """

    nodes: tuple[str, ...]
    more: tuple[str, ...]
    fewer: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The planner's answer.

    Attributes:
        cluster: the nodes.
        plan: the pods on them; those that admission refused stand among the pods that are not placed.
        explanations: of the pods of the name that was to be explained.
        change: what the nodes of ``--what-if`` change, None without such nodes.
    """

    cluster: Ledger
    plan: Plan
    explanations: tuple[Explanation, ...] = ()
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans what manifests ask for onto a cluster.

    Attributes:
        cluster: the nodes and what is held of them.
        batches: the pods of each manifest, in order.
        node_policy: for pods whose annotations do not say.
        card_policy: the same for cards.
        added: names of nodes that are not there yet; what they change is told.
    """

    cluster: Ledger
    batches: Sequence[Batch]
    node_policy: NodePolicy
    card_policy: CardPolicy
    added: frozenset[str] = frozenset()

    def report(
        self, *, explained: str | None = None, progress: Callable[[Sequence[Workload]], Iterable[Workload]] = iter
    ) -> Report:
        """Plans everything, and explains a pod where that is wanted.

        Args:
            explained: ``name`` or ``namespace/name`` of the pod.
            progress: called with the workloads; what it gives back is placed one after the other.

        Raises:
            InputError: there is no pod of that name.
        """
        found = self._plan(progress(_workloads(self.batches)))
        warnings = (
            *self.cluster.warnings,
            *(warning for batch in self.batches for warning in batch.warnings),
            *self._left_out(),
        )
        merged = replace(found, unplaced=self._in_order(found.unplaced), warnings=tuple(dict.fromkeys(warnings)))
        explanations = self._explain(explained, merged) if explained is not None else ()
        return Report(self.cluster, merged, explanations, self._change(merged) if self.added else None)

    def _change(self, found: Plan) -> Change:
        nodes = [node for node in self.cluster.nodes if node.name not in self.added]
        without = plan(_workloads(self.batches), nodes, self.cluster.used, self.node_policy, self.card_policy)
        after, before = ({id(one.pod): full_name(one.pod) for one in each.placements} for each in (found, without))
        return Change(
            tuple(node.name for node in self.cluster.nodes if node.name in self.added),
            tuple(name for pod, name in after.items() if pod not in before),
            tuple(name for pod, name in before.items() if pod not in after),
        )

    def _plan(self, workloads: Iterable[Workload]) -> Plan:
        return plan(workloads, self.cluster.nodes, self.cluster.used, self.node_policy, self.card_policy)

    def _left_out(self) -> Iterator[str]:
        names = [
            full_name(pod)
            for batch in self.batches
            for pod in batch.pods
            if isinstance(pod, PodRequest) and not pod.asks
        ]
        if names:
            subject = "1 pod asks for no NPU and is" if len(names) == 1 else f"{len(names)} pods ask for no NPU and are"
            yield f"{subject} left out: {few(names)}"

    def _in_order(self, unplaced: Iterable[Unplaced]) -> tuple[Unplaced, ...]:
        """What has no room and what admission refused, in the order of the manifests."""
        without_room = {id(one.pod): one for one in unplaced}
        return tuple(
            answer
            for batch in self.batches
            for pod in batch.pods
            if (answer := pod if isinstance(pod, Unplaced) else without_room.get(id(pod))) is not None
        )

    def _explain(self, name: str, found: Plan) -> tuple[Explanation, ...]:
        nodes = {id(placement.pod): placement.node for placement in found.placements}
        messages = {id(unplaced.pod): unplaced.message for unplaced in found.unplaced}
        explanations = []
        known = []
        owned = []
        for index, batch in enumerate(self.batches):
            for position, pod in enumerate(batch.pods):
                request = pod.pod if isinstance(pod, Unplaced) else pod
                prefix = full_name(replace(request, name="")) if "/" in name else ""
                known.append(prefix + request.name)
                if batch.owner and name == prefix + batch.owner:
                    owned.append(known[-1])
                if name != known[-1]:
                    continue
                verdicts = {}
                if request.asks:
                    earlier = replace(batch, pods=batch.pods[:position], min_available=0)
                    verdicts = self._verdicts(request, (*self.batches[:index], earlier))
                message = messages.get(id(request), "" if request.asks else _NOT_PLANNED)
                explanations.append(Explanation(request, nodes.get(id(pod)), verdicts, message))
        if not explanations:
            hint = f"; its pods are {few(owned)}" if owned else did_you_mean(name, known)
            hint = hint or (f"; there are {few(known)}" if known else "; there are none")
            raise InputError("--explain", name, f"the name of a pod is expected{hint}")
        return tuple(explanations)

    def _verdicts(self, pod: PodRequest, before: Iterable[Batch]) -> dict[str, tuple[CardVerdict, ...]]:
        """What every card says when the pod's turn comes: all that is planned before it stands in its place."""
        planned = self._plan(_workloads(before))
        used = {status.card.uuid: status.use for status in planned.cards}
        policy = Policy(self.node_policy, (self.card_policy,))
        return {node.name: explain(pod, node, used, policy) for node in self.cluster.nodes}


def _workloads(batches: Iterable[Batch]) -> list[Workload]:
    return [workload for batch in batches for workload in batch.workloads]

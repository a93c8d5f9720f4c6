"""A plan as JSON: the form that ``plan.schema.json`` describes, for machines and for ``-o yaml``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vnpu.allocation import binding_annotations
from vnpu.fit.admit import full_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from vnpu.cards import Node
    from vnpu.fit.answers import CardStatus, Placement, Unplaced
    from vnpu.fit.report import Explanation, Report


def to_json(report: Report, *, texts: Callable[[Mapping[str, str]], Any] = dict) -> dict[str, Any]:
    """The plan as a JSON object; the same plan gives the same object at any time.

    Args:
        report: the plan.
        texts: what stands for the texts of a refused pod, one for each node. As objects they take much more room than
            as they are, where thousands of pods are refused by thousands of nodes.
    """
    plan = report.plan
    nodes = {node.name: node for node in report.cluster.nodes}
    form: dict[str, Any] = {
        "policy": {"node": plan.node_policy, "card": plan.card_policy},
        "placements": [_placement(placement) for placement in plan.placements],
        "unplaced": [_unplaced(unplaced, texts) for unplaced in plan.unplaced],
        "cards": [_card(status, nodes[status.node]) for status in plan.cards],
        "warnings": list(plan.warnings),
    }
    if report.change is not None:
        change = report.change
        form["what_if"] = {"nodes": list(change.nodes), "more": list(change.more), "fewer": list(change.fewer)}
    if report.explanations:
        form["explanations"] = [_explanation(explanation) for explanation in report.explanations]
    return form


def _placement(placement: Placement) -> dict[str, Any]:
    return {
        "pod": full_name(placement.pod),
        "node": placement.node,
        "containers": [
            {
                "name": container.name,
                "cards": [
                    {
                        "uuid": share.card.uuid,
                        "index": share.card.index,
                        "memory_mib": share.memory_mib,
                        "core_percent": share.core_percent,
                        "template": share.template,
                    }
                    for share in container.cards
                ],
            }
            for container in placement.containers
            if container.cards
        ],
        "annotations": binding_annotations(placement),
    }


def _unplaced(unplaced: Unplaced, texts: Callable[[Mapping[str, str]], Any]) -> dict[str, Any]:
    return {
        "pod": full_name(unplaced.pod),
        "message": unplaced.message,
        "reasons": {str(reason): cards for reason, cards in unplaced.reasons.items()},
        "nodes": texts(unplaced.nodes),
    }


def _card(status: CardStatus, node: Node) -> dict[str, Any]:
    card, use = status.card, status.use
    return {
        "node": status.node,
        "uuid": card.uuid,
        "index": card.index,
        "chip": card.chip,
        "mode": None if status.mode is None else str(status.mode),
        "memory_used_mib": use.memory_mib,
        "memory_mib": card.memory_mib,
        "core_used_percent": use.core_percent,
        "slots_used": use.slots,
        "slots": card.slots,
        "healthy": card.healthy,
        "cordoned": card.uuid in node.cordoned,
        "unsafe": node.unsafe,
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    return {
        "pod": full_name(explanation.pod),
        "node": explanation.node,
        "message": explanation.message,
        "cards": [
            {
                "node": node,
                "uuid": verdict.card.uuid,
                "index": verdict.card.index,
                "container": verdict.container,
                "reason": None if verdict.reason is None else str(verdict.reason),
                "detail": verdict.detail,
            }
            for node, verdicts in explanation.verdicts.items()
            for verdict in verdicts
        ],
    }

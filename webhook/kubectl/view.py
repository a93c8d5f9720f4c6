"""What the commands look at: a snapshot of the cluster, read by the settings and the chip table of the installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vnpu import configuration, ledger
from vnpu.admission.settings import Settings
from vnpu.chips import DEFAULT_CHIPS
from vnpu.documents import Document
from vnpu.fit.nodes import NodeList
from vnpu.kube import NODES, PODS
from webhook.doctor.case import Case
from webhook.doctor.snapshot import UnseenError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vnpu.chips import ChipTable
    from vnpu.kube import Object
    from vnpu.ledger import Ledger
    from webhook.doctor.snapshot import Snapshot


@dataclass(frozen=True)
class View:
    """A cluster as admission and the planner see it.

    Attributes:
        case: the snapshot.
        settings: what admission judges by.
        chips: the chip table.
        nodes: every node, with what keeps pods from it.
        books: who holds what of their cards.
        notes: what the reader should know.
    """

    case: Case
    settings: Settings
    chips: ChipTable
    nodes: NodeList
    books: Ledger
    notes: tuple[str, ...]

    @property
    def pods(self) -> Sequence[Object]:
        """The pods that have to do with NPUs."""
        return self.case.snapshot.pods

    def without(self, pod: Object) -> Ledger:
        """The books as if this pod were not there."""
        uid = pod["metadata"].get("uid")
        return ledger.book(
            self.nodes.nodes, [one for one in self.pods if one["metadata"].get("uid") != uid], self.chips
        )


def view(snapshot: Snapshot, settings_file: Path | None = None, device_config_file: Path | None = None) -> View:
    """Read a snapshot by the installation's own settings and chip table, or by those of files.

    Raises:
        UnseenError: nodes or pods may not be read.
        VnpuError: a file or a node that cannot be used.
    """
    case = Case(snapshot)
    notes: list[str] = []
    settings, warnings = configuration.read_settings(settings_file)
    notes += warnings
    chips, warnings = configuration.read_chips(device_config_file)
    notes += warnings
    if settings_file is None:
        settings = _own_settings(case, notes)
    if device_config_file is None:
        chips = _own_chips(case, notes)
    nodes = NodeList(chips)
    for number, document in enumerate(snapshot.of(NODES), start=1):
        nodes.add_document(Document("the cluster's nodes", number, "", document))
    books = ledger.book(nodes.nodes, snapshot.of(PODS), chips)
    return View(case, settings, chips, nodes, books, tuple(notes))


def _own_settings(case: Case, notes: list[str]) -> Settings:
    try:
        return case.settings
    except UnseenError as error:
        notes.append(f"settings: the defaults are taken ({error.what}: {error.why})")
        return Settings()


def _own_chips(case: Case, notes: list[str]) -> ChipTable:
    try:
        return case.chips
    except UnseenError as error:
        notes.append(f"device config: the table of HAMi's chart is taken ({error.what}: {error.why})")
        return DEFAULT_CHIPS

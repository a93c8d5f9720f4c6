"""What to add to an NPU pod, so that scheduler, device plugin and limiter all read the same decision from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vnpu import names, quantity, request
from vnpu.admission import env, hook
from vnpu.admission.outcome import Set
from vnpu.admission.pod import named
from vnpu.admission.settings import Share
from vnpu.chips import ResourceKind
from vnpu.containers import SECTIONS
from vnpu.errors import FieldError, InputError, shown
from vnpu.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from vnpu.admission.pod import Member, Pod
    from vnpu.admission.settings import Settings
    from vnpu.containers import Container
    from vnpu.request import Completed, SliceRequest

ALL_KINDS: Final = frozenset(ResourceKind)
_MODE_KEYS: Final = ("metadata", "annotations", names.MODE)
_SCHEDULER: Final = "spec.schedulerName"
_LOOSE_CEILING: Final = (
    "the share is a ceiling, and no core is asked for: the ceiling is what the cores of the others on the card leave, "
    "and moves as they come and go; ask for core to fix it"
)


@dataclass(frozen=True, slots=True)
class Completion:
    """What a pod gets.

    Attributes:
        scheduler: who will schedule the pod.
        slices: the slices of those of its containers that get one.
        needed: what an NPU pod cannot be without: count, memory, core, mode, environment and hook.
        placing: scheduler and runtime class.
        warnings: what works but surprises.
        faults: what cannot be completed, and what stands in the place of what is to be written.
    """

    scheduler: str
    slices: tuple[Completed, ...]
    needed: tuple[Set, ...]
    placing: tuple[Set, ...]
    warnings: tuple[str, ...]
    faults: tuple[FieldError, ...]


def complete_pod(pod: Pod, settings: Settings) -> Completion:
    """What is to be added to a pod that asks for an NPU; completing what was completed adds nothing."""
    work = _Work(pod, settings)
    if pod.mode is not None:
        work.complete_containers(pod.mode)
    scheduler = work.place()
    return Completion(
        scheduler,
        tuple(work.slices),
        tuple(work.needed),
        tuple(work.placing),
        tuple(work.warnings),
        tuple(work.faults),
    )


def resource_sets(completed: Completed, kinds: Collection[ResourceKind] = ALL_KINDS) -> Iterator[Set]:
    """What a container's resources do not say yet: each number stands in limits and in requests.

    The API server would copy a limit into the requests of a pod, but not into those of a Volcano Job's template.

    Args:
        completed: the decision for the container.
        kinds: the numbers to write.
    """
    container = completed.asked.container
    amounts = (
        (ResourceKind.COUNT, completed.slice.count),
        (ResourceKind.MEMORY, completed.memory),
        (ResourceKind.CORE, completed.core),
    )
    written = container.raw.get("resources") or {}
    for section in SECTIONS:
        entries = written.get(section) or {}
        for kind, amount in amounts:
            if amount is None or kind not in kinds:
                continue
            name, text = completed.slice.chip.resource(kind), str(amount)
            if name not in entries or not quantity.equal(entries[name], text):
                yield Set((*container.keys, "resources", section, name), text)


class _Work:
    """The completion of one pod while it is made."""

    def __init__(self, pod: Pod, settings: Settings) -> None:
        self.pod = pod
        self.settings = settings
        self.slices: list[Completed] = []
        self.needed: list[Set] = []
        self.placing: list[Set] = []
        self.warnings: list[str] = []
        self.faults: list[FieldError] = []

    def complete_containers(self, mode: Mode) -> None:
        if names.MODE not in self.pod.annotations:
            self.needed.append(Set(_MODE_KEYS, mode.value))
        share = self.settings.share
        try:
            share = env.share_of(self.pod.annotations, self.settings)
        except FieldError as fault:
            self.faults.append(fault)
        for member in self.pod.members:
            completed = self.complete(member)
            ours: dict[str, str] = {}
            if mode is Mode.SOFT and member.asks:
                self.add_hook(member.container)
                if completed is not None:
                    ours = env.wanted(completed, share, self.settings)
                    if share is Share.CEILING and not completed.core_percent:
                        self.warnings.append(f"{member.container.path}: {_LOOSE_CEILING}")
            self.add_env(member, ours)

    def complete(self, member: Member) -> SliceRequest | None:
        if member.wanted is None:
            return None
        try:
            completed = request.complete(member.wanted, default_core_percent=self.settings.default_core_percent)
        except FieldError as fault:
            self.faults.append(named(fault, member.container))
            return None
        self.slices.append(completed)
        self.needed += resource_sets(completed)
        self.warnings += completed.warnings
        return completed.slice

    def add_hook(self, container: Container) -> None:
        try:
            started = hook.start(container, self.settings.limiter)
        except FieldError as fault:
            self.faults.append(named(fault, container))
        else:
            if started is not None:
                self.needed.append(started)

    def add_env(self, member: Member, ours: Mapping[str, str]) -> None:
        allow = self.settings.allow_reserved_env
        added, faults = env.review(member.container, ours, asks=member.asks, allow_reserved=allow)
        self.needed += added
        self.faults += (named(fault, member.container) for fault in faults)

    def place(self) -> str:
        """Scheduler and runtime class; the answer is who will schedule the pod."""
        spec, settings = self.pod.spec, self.settings
        runtime_class = settings.runtime_class_name or next(
            (name for completed in self.slices if (name := completed.slice.chip.runtime_class_name)), ""
        )
        if runtime_class and not spec.get("runtimeClassName"):
            self.placing.append(Set(("spec", "runtimeClassName"), runtime_class))
        chosen = spec.get("schedulerName") or ""
        if not isinstance(chosen, str):
            self.faults.append(InputError(_SCHEDULER, chosen, "the name of a scheduler is expected"))
            return ""
        if chosen in ("", names.SCHEDULER_DEFAULT):
            ours = settings.scheduler_name
            if ours not in ("", chosen):
                self.placing.append(Set(("spec", "schedulerName"), ours))
            return ours or names.SCHEDULER_DEFAULT
        if chosen not in settings.accepted_schedulers:
            self.warnings.append(
                f"{_SCHEDULER}: {shown(chosen)} is kept, but it is not known to book NPUs; if it does, name it in the "
                "setting knownSchedulers"
            )
        return chosen

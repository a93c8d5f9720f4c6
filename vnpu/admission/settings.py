"""The settings of the webhook: one YAML mapping, typed; what is left out has the default below."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypeVar

from vnpu import names
from vnpu.cards import WHOLE_CORE
from vnpu.errors import ABSENT, ConfigError, shown
from vnpu.fields import Fields, Form
from vnpu.mode import Mode
from vnpu.quantity import INT32_MAX


class Share(StrEnum):
    """What the core of a soft slice means: a weight whose idle time others may use, or a ceiling too."""

    WEIGHTED = "weighted"
    CEILING = "ceiling"


class OnTimeout(StrEnum):
    """What a workload does whose limiter never comes: end, or get an error from every call."""

    EXIT = names.ON_TIMEOUT_EXIT
    DENY = names.ON_TIMEOUT_DENY


class Hook(StrEnum):
    """Which postStart hook starts the limiter: ours, the one of HAMi 2.9 for the upstream binary, or none."""

    NATIVE = "native"
    HAMI = "hami"
    NONE = "none"


class UnknownChips(StrEnum):
    """What happens to a ``huawei.com/Ascend...`` that the device config does not know and that stands alone."""

    IGNORE = "ignore"
    WARN = "warn"
    DENY = "deny"


class DevicePlugin(StrEnum):
    """Whose device plugin serves the nodes: HAMi's, or ours."""

    HAMI = "hami"
    VNPU = "vnpu"


class Templates(StrEnum):
    """What a fault in the pod template of a controller brings: a warning, or a refusal."""

    WARN = "warn"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Limiter:
    """How the limiter of a soft container is started.

    Attributes:
        path: of the limiter in the container; absolute, and called ``limiter``, by which a hook is known again.
        hook: the form of the hook.
    """

    path: str = names.LIMITER
    hook: Hook = Hook.NATIVE


DEFAULT_ALLOCATORS: Final = (
    "system:serviceaccount:vnpu-system:vnpu-scheduler",
    "system:serviceaccount:vnpu-system:vnpu-device-plugin",
    "system:serviceaccount:kube-system:hami-scheduler",
    "system:serviceaccount:kube-system:hami-device-plugin",
    "system:serviceaccount:kube-system:hami-ascend",
    "system:serviceaccount:volcano-system:volcano-scheduler",
)
"""Who writes allocations in a default installation: scheduler and device plugin of ours, those of HAMi (the second of
its plugins is for GPU pods, which carry ``hami.io/vgpu-*`` as well), HAMi's Ascend plugin, and Volcano's scheduler.

Kubelets are not among them: they write a pod's status, never its annotations, and one stolen kubelet key would
otherwise free the cards of every node."""


@dataclass(frozen=True)
class Settings:
    """The settings; attribute ``default_mode`` is the key ``defaultMode``, and so on.

    Attributes:
        default_mode: of pods that neither carry the mode annotation nor ask for core.
        scheduler_name: written where a pod leaves the choice to the default scheduler; ``""`` leaves it.
        known_schedulers: schedulers that know NPUs; other names that a user chose bring a warning.
        volcano_schedulers: those of the known ones that are Volcano.
        runtime_class_name: written where a pod has none, before the chip's own; ``""`` leaves it.
        default_core_percent: core of a soft slice that takes a part of a card and names none; 0 guarantees nothing.
        share: of pods without the annotation ``huawei.com/vnpu-share``.
        on_timeout: what a workload does whose limiter never comes.
        limiter: how the limiter is started.
        unknown_chips: what happens to chips that the device config does not know.
        device_plugin: whose device plugin serves the nodes.
        max_soft_cards: cards that one soft container may ask for; None is 1 with HAMi's device plugin, which limits
            only the first, and any number with ours.
        templates: what a fault in a controller's pod template brings.
        allocators: user names that may change allocation annotations and the mode of a pod.
        allow_privileged: whether privileged containers may stand in a pod that asks for an NPU.
        allow_node_name: whether such a pod may choose its node by name, past every scheduler.
        allow_reserved_env: whether such a pod may set reserved env itself; what it sets is then left as it is.
    """

    default_mode: Mode = Mode.HARD
    scheduler_name: str = ""
    known_schedulers: tuple[str, ...] = (names.SCHEDULER_VOLCANO, names.SCHEDULER_HAMI)
    volcano_schedulers: tuple[str, ...] = (names.SCHEDULER_VOLCANO,)
    runtime_class_name: str = ""
    default_core_percent: int = 0
    share: Share = Share.WEIGHTED
    on_timeout: OnTimeout = OnTimeout.EXIT
    limiter: Limiter = field(default_factory=Limiter)
    unknown_chips: UnknownChips = UnknownChips.IGNORE
    device_plugin: DevicePlugin = DevicePlugin.HAMI
    max_soft_cards: int | None = None
    templates: Templates = Templates.WARN
    allocators: tuple[str, ...] = DEFAULT_ALLOCATORS
    allow_privileged: bool = False
    allow_node_name: bool = False
    allow_reserved_env: bool = False

    def offline(self) -> Settings:
        """The same, for manifests that are looked at before they meet a cluster.

        There a slip in a chip's name can still be told from a resource that another device plugin serves.
        """
        return replace(self, unknown_chips=UnknownChips.WARN) if self.unknown_chips is UnknownChips.IGNORE else self

    @cached_property
    def soft_card_limit(self) -> int | None:
        """Cards that one soft container may ask for, None for any number."""
        if self.max_soft_cards is None and self.device_plugin is DevicePlugin.HAMI:
            return 1
        return self.max_soft_cards

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What an administrator should know about settings that are allowed."""
        known = {"", names.SCHEDULER_DEFAULT, *self.known_schedulers, *self.volcano_schedulers}
        if self.scheduler_name in known:
            return ()
        why = "is written into pods, but it is not among knownSchedulers: if it books NPUs, name it there too"
        return (f"schedulerName: {shown(self.scheduler_name)} {why}",)

    @cached_property
    def accepted_schedulers(self) -> frozenset[str]:
        """Scheduler names that need no warning."""
        ours = {self.scheduler_name or names.SCHEDULER_DEFAULT}
        return frozenset(ours.union(self.known_schedulers, self.volcano_schedulers))


_KEYS: Final = (
    *("defaultMode", "schedulerName", "knownSchedulers", "volcanoSchedulers", "runtimeClassName"),
    *("defaultCorePercent", "share", "onTimeout", "limiter", "unknownChips", "devicePlugin", "maxSoftCards"),
    *("templates", "allocators", "allowPrivileged", "allowNodeName", "allowReservedEnv"),
)
_LIMITER_KEYS: Final = ("path", "hook")
_PATH_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")
_Word = TypeVar("_Word", bound=StrEnum)


def parse_settings(document: Any) -> Settings:
    """The settings in a parsed YAML document; an empty document, and a key without a value, mean the defaults.

    Raises:
        ConfigError: the first key that nobody knows (with the nearest known one), or value that is not allowed.
    """
    fields = Fields({} if document is None else document)
    fields.refuse_unknown(_KEYS)
    default = Settings()
    return Settings(
        default_mode=_word(fields, "defaultMode", default.default_mode),
        scheduler_name=fields.name("schedulerName", default.scheduler_name, form=Form.SCHEDULER),
        known_schedulers=fields.names("knownSchedulers", default.known_schedulers),
        volcano_schedulers=fields.names("volcanoSchedulers", default.volcano_schedulers),
        runtime_class_name=fields.name("runtimeClassName", default.runtime_class_name, form=Form.SUBDOMAIN),
        default_core_percent=fields.number("defaultCorePercent", low=0, high=WHOLE_CORE, default=0),
        share=_word(fields, "share", default.share),
        on_timeout=_word(fields, "onTimeout", default.on_timeout),
        limiter=_limiter(fields),
        unknown_chips=_word(fields, "unknownChips", default.unknown_chips),
        device_plugin=_word(fields, "devicePlugin", default.device_plugin),
        max_soft_cards=None if _unset(fields, "maxSoftCards") else fields.number("maxSoftCards", low=1, high=INT32_MAX),
        templates=_word(fields, "templates", default.templates),
        allocators=fields.names("allocators", default.allocators),
        allow_privileged=fields.boolean("allowPrivileged"),
        allow_node_name=fields.boolean("allowNodeName"),
        allow_reserved_env=fields.boolean("allowReservedEnv"),
    )


def _unset(fields: Fields, name: str) -> bool:
    return fields.get(name) in (ABSENT, None)


def _word(fields: Fields, name: str, default: _Word) -> _Word:
    if _unset(fields, name):
        return default
    value = fields.get(name)
    for word in type(default):
        if value == word.value:
            return word
    raise ConfigError(fields.key(name), value, f"allowed are {', '.join(type(default))}")


def _limiter(fields: Fields) -> Limiter:
    default = Limiter()
    if _unset(fields, "limiter"):
        return default
    limiter = Fields(fields.get("limiter"), fields.key("limiter"))
    limiter.refuse_unknown(_LIMITER_KEYS)
    path = limiter.name("path", default.path)
    if path[:1] != "/" or path[:2] == "//" or posixpath.normpath(path) != path or not path.endswith("/limiter"):
        raise ConfigError(limiter.key("path"), path, "an absolute path that ends in /limiter is expected")
    if not _PATH_CHARACTERS.issuperset(path):
        raise ConfigError(limiter.key("path"), path, "letters, digits and the characters . _ - / are allowed")
    return Limiter(path, _word(limiter, "hook", default.hook))

"""The device config: the chip table of a cluster, in the format of HAMi's ``device-config.yaml``.

Both layouts of ``vnpus`` are read: the map ``{hamiVnpuCore, configs: [...]}`` (HAMi 2.9 and newer) and the bare list
of before. HAMi and Volcano ignore what they do not know and fall back in silence to a built-in table; here every
fault is an error that names its field, and what merely surprises is a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from vnpu import names
from vnpu.chips import Chip, ChipTable, Template, standard_names
from vnpu.errors import ABSENT, ConfigError, item, key, shown
from vnpu.fields import Fields, Form

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHIP_KEYS: Final = (
    *("commonWord", "chipName", "resourceName", "resourceMemoryName", "resourceCoreName"),
    *("memoryAllocatable", "memoryCapacity", "memoryFactor", "aiCore", "aiCPU"),
    *("runtimeClassName", "overwriteEnv", "superPod", "templates"),
)
_TEMPLATE_KEYS: Final = ("name", "memory", "aiCore", "aiCPU")
_MINDCLUSTER_TEMPLATE_ENDS: Final = ("_ndvpp", "_dvpp")


@dataclass(frozen=True, slots=True)
class DeviceConfig:
    """A chip table and what its reader should know about it.

    Attributes:
        table: the chips.
        warnings: sentences about what works but surprises: the old layout, unknown keys, names that Volcano builds
            differently.
    """

    table: ChipTable
    warnings: tuple[str, ...] = ()


def parse(document: Any) -> DeviceConfig:
    """The chip table in a parsed ``device-config.yaml``.

    Args:
        document: the mapping that the YAML holds. Other keys than ``vnpus`` belong to other vendors.

    Raises:
        ConfigError: the first field that cannot be used.
    """
    section = Fields(document).get("vnpus")
    warnings: list[str] = []
    soft = False
    if isinstance(section, list):
        warnings.append("vnpus: a list is the layout of before HAMi 2.9; write vnpus: {hamiVnpuCore, configs: [...]}")
        entries: Any = section
        path = "vnpus"
    else:
        layout = Fields(section, "vnpus")
        soft = layout.boolean("hamiVnpuCore")
        entries = layout.get("configs")
        path = "vnpus.configs"
        _note_unknown(layout, ("hamiVnpuCore", "configs"), warnings)
    if not isinstance(entries, list) or not entries:
        raise ConfigError(path, entries, "a list of at least one chip is expected")
    chips = tuple(_chip(entry, item(path, index), warnings) for index, entry in enumerate(entries))
    _check_unique(chips, path)
    return DeviceConfig(ChipTable(chips, soft_nodes_by_default=soft), tuple(warnings))


def _chip(entry: Any, path: str, warnings: list[str]) -> Chip:
    fields = Fields(entry, path)
    _note_unknown(fields, _CHIP_KEYS, warnings)
    resource_name = fields.name("resourceName")
    capacity_mib = fields.number("memoryCapacity", low=1)
    chip = Chip(
        common_word=fields.name("commonWord", form=Form.COMMON_WORD),
        chip_name=fields.name("chipName"),
        resource_name=resource_name,
        memory_name=fields.name("resourceMemoryName", default=resource_name + names.MEMORY_SUFFIX),
        core_name=fields.name("resourceCoreName", default=resource_name + names.CORE_SUFFIX),
        memory_allocatable_mib=fields.number("memoryAllocatable", low=1, high=capacity_mib),
        memory_capacity_mib=capacity_mib,
        ai_core=fields.number("aiCore", low=0, default=0),
        ai_cpu=fields.number("aiCPU", low=0, default=0),
        memory_factor=max(1, fields.number("memoryFactor", low=0, default=1)),
        runtime_class_name=fields.name("runtimeClassName", default="", form=Form.SUBDOMAIN),
        super_pod=fields.boolean("superPod"),
        templates=_templates(fields.get("templates"), fields.key("templates"), warnings),
    )
    fields.boolean("overwriteEnv")  # HAMi's; ours never writes an empty ASCEND_VISIBLE_DEVICES
    _check_chip(chip, path)
    warnings += _surprises(chip, path)
    return chip


def _surprises(chip: Chip, path: str) -> Iterator[str]:
    standard, _, _ = standard_names(chip.common_word)
    if chip.resource_name != standard:
        yield (
            f"{key(path, 'resourceName')}: {shown(chip.resource_name)} is not {standard}; annotations still use "
            f"{chip.common_word}"
        )
    memory, core = chip.resource_name + names.MEMORY_SUFFIX, chip.resource_name + names.CORE_SUFFIX
    if chip.memory_name != memory:
        yield (
            f"{key(path, 'resourceMemoryName')}: {shown(chip.memory_name)} is not {memory}; pods, quotas and the "
            "resources that a scheduler is told to ignore must name it so"
        )
    if chip.core_name != core:
        yield f"{key(path, 'resourceCoreName')}: {shown(chip.core_name)}: Volcano ignores this key, and reads {core}"
    if chip.memory_factor > 1:
        yield f"{key(path, 'memoryFactor')}: {chip.memory_factor}: Volcano does not know this key"


def _templates(entries: Any, path: str, warnings: list[str]) -> tuple[Template, ...]:
    if entries in (ABSENT, None):
        return ()
    if not isinstance(entries, list):
        raise ConfigError(path, entries, "a list of templates is expected")
    templates = []
    for index, entry in enumerate(entries):
        place = item(path, index)
        fields = Fields(entry, place)
        _note_unknown(fields, _TEMPLATE_KEYS, warnings)
        template = Template(
            fields.name("name"),
            fields.number("memory", low=1),
            fields.number("aiCore", low=0, default=0),
            fields.number("aiCPU", low=0, default=0),
        )
        if template.name.endswith(_MINDCLUSTER_TEMPLATE_ENDS):
            raise ConfigError(
                fields.key("name"),
                template.name,
                "this template is MindCluster's, its mode cannot be mixed with ours",
            )
        templates.append(template)
    by_name = {template.name for template in templates}
    if len(by_name) != len(templates):
        raise ConfigError(path, [template.name for template in templates], "each template name may stand once")
    return tuple(sorted(templates, key=lambda template: (template.memory_mib, template.name)))


def _check_chip(chip: Chip, path: str) -> None:
    for field, name in _resources(chip):
        if not Form.RESOURCE.fits(name):
            raise ConfigError(key(path, field), name, Form.RESOURCE.allowed)
    for template in chip.templates:
        for value, limit, what in (
            (template.memory_mib, chip.memory_allocatable_mib, "memoryAllocatable"),
            (template.ai_core, chip.ai_core, "aiCore"),
            (template.ai_cpu, chip.ai_cpu, "aiCPU"),
        ):
            if value > limit:
                place = f"{key(path, 'templates')}[{template.name}]"
                raise ConfigError(place, value, f"at most the card's {what} {limit} is allowed")
    smallest_mib = min([chip.memory_allocatable_mib, *(template.memory_mib for template in chip.templates)])
    if chip.memory_factor > smallest_mib:
        allowed = f"at most {smallest_mib} is allowed: so many MiB has the card's smallest slice"
        raise ConfigError(key(path, "memoryFactor"), chip.memory_factor, allowed)


def _resources(chip: Chip) -> tuple[tuple[str, str], ...]:
    return (
        ("resourceName", chip.resource_name),
        ("resourceMemoryName", chip.memory_name),
        ("resourceCoreName", chip.core_name),
    )


def _check_unique(chips: tuple[Chip, ...], path: str) -> None:
    seen: dict[str, str] = {}
    for index, chip in enumerate(chips):
        place = item(path, index)
        for field, value in (("commonWord", chip.common_word), *_resources(chip)):
            if value in seen:
                raise ConfigError(key(place, field), value, f"the same name stands at {seen[value]}; names are unique")
            seen[value] = key(place, field)


def _note_unknown(fields: Fields, known: tuple[str, ...], warnings: list[str]) -> None:
    warnings += [f"{fields.key(name)}: unknown key, ignored{hint}" for name, hint in fields.unknown(known)]

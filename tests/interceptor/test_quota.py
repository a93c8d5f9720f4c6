from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from interceptor import quota
from tests.support import native
from tests.support.examples import examples
from vnpu.errors import ConfigError

VECTORS = Path(__file__).parent / "quota_vectors.tsv"


def vectors() -> list[tuple[str, str, str]]:
    rows = []
    for line in VECTORS.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            kind, text, meaning = line.split("\t")
            rows.append((kind, text, meaning))
    return rows


def unescaped(text: str) -> str:
    return text.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")


def python_says(kind: str, text: str) -> str:
    match kind:
        case "memory":
            return str(quota.parse_memory(text))
        case "priority":
            return str(quota.parse_priority(text))
        case "ceiling":
            return str(int(quota.parse_ceiling(text)))
        case "cards":
            return " ".join(map(str, quota.parse_cards(text)))
        case _:
            found = quota.parse_quota_file(text)
            return f"{found.memory_mib} {found.priority or 0} {int(found.ceiling)}"


def answer_of_python(kind: str, text: str) -> str:
    try:
        return python_says(kind, text)
    except ConfigError:
        return "!"


def answers_of_c(rows: list[tuple[str, str, str]], arch: str) -> list[str]:
    lines = "".join(f"{kind}\t{text}\t{meaning}\n" for kind, text, meaning in rows)
    command = native.unit("quota", arch)
    answers = subprocess.run(command, input=lines.encode(), capture_output=True, check=True).stdout.decode()
    return ["!" if answer.startswith("!") else answer for answer in answers.splitlines()]


@pytest.mark.parametrize(("kind", "text", "meaning"), vectors())
def test_python_parser(kind: str, text: str, meaning: str) -> None:
    if meaning == "!":
        with pytest.raises(ConfigError, match=r"is allowed|are allowed"):
            python_says(kind, unescaped(text))
    else:
        assert python_says(kind, unescaped(text)) == meaning


@pytest.mark.parametrize("arch", native.ARCHES)
def test_c_parser_says_the_same(arch: str) -> None:
    rows = vectors()

    assert answers_of_c(rows, arch) == [answer_of_python(kind, unescaped(text)) for kind, text, _ in rows]


KINDS = st.sampled_from(["memory", "priority", "ceiling", "cards", "file"])
TEXTS = st.text(alphabet='0123456789-, .{}":tmepriorytyfixdsha_lbu', max_size=40) | st.from_regex(
    r'\A\{"memory_mib": ?[0-9]{1,11}(, ?"(priority|fixed_share_ratio)": ?([0-9]{1,4}|true|false)){0,2}\}\Z'
)


# Each example starts a program, so it carries many texts.
@settings(examples(25), phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(rows=st.lists(st.tuples(KINDS, TEXTS, st.just("?")), min_size=20, max_size=60))
def test_the_parsers_agree_on_any_text(rows: list[tuple[str, str, str]]) -> None:
    assert answers_of_c(rows, "x86_64") == [answer_of_python(kind, text) for kind, text, _ in rows]


def test_a_refusal_names_field_value_and_what_is_allowed() -> None:
    with pytest.raises(ConfigError) as refusal:
        quota.parse_memory("8Gi", "NPU_MEM_QUOTA")

    assert str(refusal.value) == f'NPU_MEM_QUOTA: "8Gi": {quota.MEMORY_ALLOWED}'

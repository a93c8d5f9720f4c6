"""Containerfile says the same as the program, and keeps to what linters of such files ask for.

Its steps are run for real by ``make image-check``.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

from tests.support import helm
from tests.support.containerfile import Stage, parse
from tests.support.image import CONTAINERFILE, PROGRAMS
from vnpu import names

STAGES: Final = parse(CONTAINERFILE)
PROJECT: Final = tomllib.loads((helm.TOP / "pyproject.toml").read_text())


def texts(stage: Stage, word: str) -> list[str]:
    return [step.text for step in stage.instructions if step.word == word]


def test_base_images_have_a_version_and_the_last_stage_nothing_of_the_build() -> None:
    bases = {stage.base for stage in STAGES}
    assert all(re.fullmatch(r"[a-z.]+/[a-z/]+:3\.\d+(-slim)?-[a-z]+", base) for base in bases)
    assert "-slim-" in STAGES[-1].base
    assert texts(STAGES[-1], "RUN") == []
    copied = [text.split()[0] for text in texts(STAGES[-1], "COPY")]
    assert all(source.startswith("--from=") for source in copied)


def test_the_user_is_nobody_and_the_one_of_the_chart() -> None:
    (user,) = texts(STAGES[-1], "USER")
    assert user == "65532:65532"
    spec = helm.template(4, helm.VALUE_SETS["default"]).object("Deployment", "vnpu-webhook")["spec"]["template"]["spec"]
    assert f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}" == user


def test_the_native_parts_are_where_the_installer_looks() -> None:
    copied = dict(text.removeprefix("--from=").split(maxsplit=1) for text in texts(STAGES[-1], "COPY"))
    assert copied["native"].split()[1] == names.NATIVE_DIR


def test_the_compiler_is_the_one_that_the_tests_use() -> None:
    (pinned,) = re.findall(r"ziglang==\S+", CONTAINERFILE.read_text())
    assert pinned in PROJECT["dependency-groups"]["dev"]


def test_the_wheel_holds_every_package_that_is_copied() -> None:
    wheel = next(stage for stage in STAGES if stage.name == "wheel")
    copied = {text.split()[0] for text in texts(wheel, "COPY")}
    packages = set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert packages <= copied
    assert {program.partition(".")[0] for program in PROGRAMS} <= packages


def test_what_is_copied_is_not_ignored() -> None:
    kept = {line[1:] for line in (helm.TOP / ".containerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for stage in STAGES
        for text in texts(stage, "COPY")
        if not text.startswith("--from=")
        for source in text.split()[:-1]
    }
    assert copied == kept


def test_steps_leave_no_caches_and_fetch_nothing_by_hand() -> None:
    steps = [text for stage in STAGES for text in texts(stage, "RUN")]
    for step in steps:
        assert not re.search(r"\b(curl|wget|sudo|apt-get|cd)\b", step)
        assert step.count("pip install") + step.count("pip wheel") <= step.count("--no-cache-dir")
    assert not any(texts(stage, "ADD") for stage in STAGES)
    assert all(text.startswith("/") for stage in STAGES for text in texts(stage, "WORKDIR"))
    assert all(text.startswith("[") for word in ("CMD", "ENTRYPOINT") for text in texts(STAGES[-1], word))


def test_the_labels_are_those_of_the_project() -> None:
    (labels,) = texts(STAGES[-1], "LABEL")
    assert f'title="{PROJECT["project"]["name"]}"' in labels
    assert f'licenses="{PROJECT["project"]["license"]}"' in labels

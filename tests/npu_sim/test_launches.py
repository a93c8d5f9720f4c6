"""Every way to hand in a kernel puts one kernel on the card."""

from __future__ import annotations

import pytest

from tests.support.simulated_npu import MS, PARAM_INVALID, Machine

ARGS_EX = ("poke ex 0 8 &k", "poke ex 16 4 32")
"""An rtArgsEx_t in the variable ``ex``, with the kernel's description as its arguments."""

DESCRIBED = [
    ("rtKernelLaunch", (0, 1, "&k", 32, 0, "s")),
    ("rtKernelLaunchWithFlag", (0, 1, "&ex", 0, "s", 0)),
    ("rtKernelLaunchWithFlagV2", (0, 1, "&ex", 0, "s", 0, 0)),
    ("rtKernelLaunchWithHandle", ("b", 1, 1, "&ex", 0, "s", 0)),
    ("rtKernelLaunchWithHandleV2", ("b", 1, 1, "&ex", 0, "s", 0)),
    ("rtLaunchKernelByFuncHandleV3", ("f", 1, "&ex", "s", 0)),
    ("rtsLaunchKernelWithHostArgs", ("f", 1, "s", 0, "&k", 32, 0, 0)),
    ("rtsLaunchKernelWithDevArgs", ("f", 1, "s", 0, "&k", 32, 0)),
    ("rtVectorCoreKernelLaunch", (0, 1, "&ex", 0, "s", 0, 0)),
    ("rtVectorCoreKernelLaunchWithHandle", ("b", 1, 1, "&ex", 0, "s", 0)),
    ("rtAicpuKernelLaunchWithFlag", ("'names", 1, "&ex", 0, "s", 0)),
    ("rtAicpuKernelLaunchExWithArgs", (1, "'op", 1, "&ex", 0, "s", 0)),
    ("rtCpuKernelLaunchWithFlag", ("'so", "'kernel", 1, "&ex", 0, "s", 0)),
    ("rtKernelLaunchEx", ("&k", 32, 0, "s")),
    ("rtKernelLaunchFwk", ("'op", "&k", 32, 0, "s")),
    ("rtFftsPlusTaskLaunch", ("&k", "s")),
    ("rtFftsPlusTaskLaunchWithFlag", ("&k", "s", 0)),
    ("rtStarsTaskLaunch", ("&k", 32, "s")),
    ("rtStarsTaskLaunchWithFlag", ("&k", 32, "s", 0)),
    ("rtMultipleTaskInfoLaunch", ("&k", "s")),
    ("rtFusionLaunch", ("&k", "s", 0)),
    ("rtCCULaunch", ("&k", "s")),
    ("rtLaunchDvppTask", ("&k", 32, "s", 0)),
    ("rtNanoModelExecute", ("&k",)),
    ("aclrtLaunchKernel", ("f", 1, "&k", 32, "s")),
    ("aclrtLaunchKernelV2", ("f", 1, "&k", 32, 0, "s")),
    ("aclrtLaunchKernelWithHostArgs", ("f", 1, "s", 0, "&k", 32, 0, 0)),
    ("rtLaunchSIMTKernelWithHostArgs", ("f", 2 << 32 | 1, 1, 1 << 32 | 1, 3, 0, "s", 0, "&k", 32, 0, 0)),
    ("aclrtLaunchSIMTKernelWithHostArgs", ("f", 2 << 32 | 1, 1, 1 << 32 | 1, 3, 0, "s", 0, "&k", 32, 0, 0)),
    ("aclmdlExecute", ("model", 0, 0)),
    ("aclmdlExecuteV2", ("model", 0, 0, "s", 0)),
    ("aclmdlExecuteAsync", ("model", 0, 0, "s")),
    ("aclmdlExecuteAsyncV2", ("model", 0, 0, "s", 0)),
]
"""Launches that carry the kernel's description."""

NAMED = [
    ("rtKernelLaunch", ("stub", 1, 0, 0, 0, "s")),
    ("rtLaunchKernelByFuncHandle", ("f", 1, 0, "s")),
    ("rtLaunchKernelByFuncHandleV2", ("f", 1, 0, "s", 0)),
    ("rtsLaunchKernelWithConfig", ("f", 1, "s", 0, 0, 0)),
    ("rtLaunchKernelWithArgsArray", ("f", 1, "s", 0, 0)),
    ("rtsLaunchCpuKernel", ("f", 1, "s", 0, 0)),
    ("aclrtLaunchKernelWithConfig", ("f", 1, "s", 0, 0, 0)),
    ("aclrtLaunchKernelWithArgsArray", ("f", 1, "s", 0, 0)),
    ("rtLaunchSIMTKernelWithArgsArray", ("f", 2 << 32 | 1, 1, 1 << 32 | 1, 3, 0, "s", 0, 0)),
    ("aclrtLaunchSIMTKernelWithArgsArray", ("f", 2 << 32 | 1, 1, 1 << 32 | 1, 3, 0, "s", 0, 0)),
]
"""Launches of which only the function's name is known."""

OPERATORS = [
    ("aclopExecWithHandle", ("f", 0, 0, 0, 0, "s")),
    ("aclopExecute", ("'Add", 0, 0, 0, 0, 0, 0, 0, "s")),
    ("aclopCompileAndExecute", ("'Add", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "s")),
    ("aclopCompileAndExecuteV2", ("'Add", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "s")),
    ("aclopExecuteV2", ("'Add", 0, 0, 0, 0, 0, 0, 0, "s")),
]
"""Launches that take as long as the settings say."""


def launch(machine: Machine, name: str, arguments: tuple[int | str, ...]) -> int:
    """The device time, in ns, of one kernel launched so."""
    with machine.client() as client:
        client.kernel("k", 3_000)
        for line in ARGS_EX:
            client.do(*line.split())
        client.do("aclrtCreateStream", "&s")
        client.do("aclrtBinaryLoadFromData", "'binary", 6, 0, "&b")
        client.do("aclrtBinaryGetFunction", "b", "'function_2ms", "&f")
        client.do("rtFunctionRegister", "b", 4096, "'stub_2ms", 0, 0)
        client.do("poke", "stub", 0, 8, 4096)
        client.do("aclmdlLoadFromMem", "&k", 32, "&model")
        client.do(name, *arguments)
        client.do("aclrtSynchronizeDevice")
        assert machine.card()["kernels"] == 1
        busy: int = machine.card()["busy_ns"]
        return busy


@pytest.mark.parametrize(("name", "arguments"), DESCRIBED)
def test_launches_with_a_description(wired: Machine, name: str, arguments: tuple[int | str, ...]) -> None:
    assert launch(wired, name, arguments) == 3 * MS


@pytest.mark.parametrize(("name", "arguments"), NAMED)
def test_launches_by_name(wired: Machine, name: str, arguments: tuple[int | str, ...]) -> None:
    assert launch(wired, name, arguments) == 2 * MS


@pytest.mark.parametrize(("name", "arguments"), OPERATORS)
def test_launches_of_operators(wired: Machine, name: str, arguments: tuple[int | str, ...]) -> None:
    wired.tool("set", "kernel_us=1000")
    assert launch(wired, name, arguments) in {MS, 2 * MS}


def test_nothing_is_launched_without_a_function_or_a_description(wired: Machine) -> None:
    with wired.client() as client:
        for name, arguments in (
            ("rtsLaunchKernelWithHostArgs", (0, 1, 0, 0, 0, 0, 0, 0)),
            ("rtFusionLaunch", (0, 0, 0)),
            ("rtStarsTaskLaunch", (0, 0, 0)),
        ):
            assert client.call(name, *arguments).code == PARAM_INVALID
        assert wired.card()["kernels"] == 0

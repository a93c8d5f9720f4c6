"""Which library has which names in each wiring, and which calls somebody in between gets to see."""

from __future__ import annotations

import itertools
import subprocess
from functools import cache
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.support import native
from tests.support.simulated_npu import NOT_SUPPORTED, WIRINGS, Machine, flag

ACL_MEMORY = """
aclrtMalloc aclrtMallocAlign32 aclrtMallocCached aclrtMallocWithCfg aclrtMallocForTaskScheduler aclrtFree
aclrtFreeWithDevSync aclrtMallocPhysical aclrtFreePhysical aclrtReserveMemAddress aclrtReserveMemAddressNoUCMemory
aclrtReleaseMemAddress aclrtMapMem aclrtUnmapMem aclrtMemSetAccess aclrtMemAllocManaged aclrtMemPoolMallocAsync
aclrtMemPoolFreeAsync aclrtMallocHost aclrtMallocHostWithCfg aclrtFreeHost aclrtHostRegister aclrtHostRegisterV2
aclrtHostUnregister aclrtMemExportToShareableHandle aclrtMemImportFromShareableHandle aclrtMemRetainAllocationHandle
aclrtGetMemInfo aclrtGetMemUsageInfo
"""
ACL_WORK = """
aclrtLaunchKernelWithHostArgs aclrtLaunchKernel aclrtLaunchKernelV2 aclrtLaunchKernelWithConfig
aclrtLaunchKernelWithArgsArray aclrtLaunchSIMTKernelWithHostArgs aclrtLaunchSIMTKernelWithArgsArray
aclmdlRIExecuteAsync aclmdlRIExecute aclmdlRICaptureBegin aclmdlRICaptureEnd
aclmdlRICaptureGetInfo aclrtSynchronizeStream aclrtSynchronizeStreamWithTimeout aclrtSynchronizeDevice
aclrtSynchronizeDeviceWithTimeout aclrtSynchronizeEvent aclrtSynchronizeEventWithTimeout aclrtStreamQuery
aclrtQueryEventStatus aclrtQueryEventWaitStatus aclrtRecordEvent aclrtEventElapsedTime aclrtStreamWaitEvent
aclrtSetDeviceResLimit aclrtSetStreamResLimit aclrtSetDevice aclrtGetDevice aclrtResetDevice aclrtResetDeviceForce
aclrtGetDeviceCount aclrtGetSocName aclrtGetPrimaryCtxState
"""
RT_MEMORY = """
rtMalloc rtFree rtMallocCached rtsMalloc rtMemAlloc rtsFree rtFreeWithDevSync rtMallocPhysical rtFreePhysical
rtsMemMallocPhysical rtsMemFreePhysical rtDvppMalloc rtDvppMallocWithFlag rtDvppFree rtMemAllocManaged rtMemFreeManaged
rtMemPoolMallocAsync rtMemPoolFreeAsync rtMallocHost rtsMallocHost rtFreeHost rtReserveMemAddress rtReleaseMemAddress
rtMapMem rtUnmapMem rtMemImportFromShareableHandle rtMemGetInfo rtMemGetInfoEx rtsMemGetInfo rtMemGetInfoByType
rtGetMemUsageInfo rtSetDevice rtGetDevice rtDeviceReset rtDeviceResetForce
"""
RT_WORK = """
rtKernelLaunch rtKernelLaunchWithHandle rtKernelLaunchWithHandleV2 rtKernelLaunchWithFlag rtKernelLaunchWithFlagV2
rtLaunchKernelByFuncHandle rtLaunchKernelByFuncHandleV2 rtLaunchKernelByFuncHandleV3 rtsLaunchKernelWithHostArgs
rtsLaunchKernelWithDevArgs rtsLaunchKernelWithConfig rtLaunchKernelWithArgsArray rtVectorCoreKernelLaunch
rtVectorCoreKernelLaunchWithHandle rtAicpuKernelLaunchWithFlag rtAicpuKernelLaunchExWithArgs rtCpuKernelLaunchWithFlag
rtsLaunchCpuKernel rtKernelLaunchEx rtKernelLaunchFwk rtModelExecute rtModelExecuteSync rtsModelExecute
rtsModelExecuteAsync rtFftsPlusTaskLaunch rtFftsPlusTaskLaunchWithFlag rtStarsTaskLaunch rtStarsTaskLaunchWithFlag
rtMultipleTaskInfoLaunch rtFusionLaunch rtCCULaunch rtLaunchDvppTask rtNanoModelExecute rtStreamSynchronize
rtStreamSynchronizeWithTimeout rtEventQuery rtStreamQuery rtStreamGetCaptureInfo rtDevBinaryRegister rtFunctionRegister
rtGetC2cCtrlAddr rtLaunchSIMTKernelWithHostArgs rtLaunchSIMTKernelWithArgsArray
"""
HAL = """
halMemAlloc halMemFree halMemCreate halMemRelease halMemPoolMalloc halMemPoolFree halMemAddressReserve
halMemAddressFree halMemMap halMemUnmap halHostRegister halMemGetInfo halGetAPIVersion halGetDeviceInfo
"""
DCMI = """
dcmi_get_device_hbm_info dcmi_get_device_memory_info_v3 dcmi_get_device_memory_info_v2 dcmi_get_hbm_info
dcmi_get_memory_info dcmiv2_get_device_hbm_info dcmiv2_get_device_utilization_rate dcmiv2_get_device_proc_mem_info
dcmi_get_device_utilization_rate dcmi_get_device_resource_info
"""
OWN = {
    "libascend_hal.so": HAL,
    "libruntime.so": RT_MEMORY + RT_WORK,
    "libacl_rt.so": ACL_MEMORY + ACL_WORK,
    "libascendcl.so": """aclInit aclFinalize aclmdlExecute aclmdlExecuteAsync aclmdlExecuteV2 aclmdlExecuteAsyncV2
                         aclopExecute aclopExecuteV2 aclopExecWithHandle""",
    "libacl_op_compiler.so": "aclopCompileAndExecute aclopCompileAndExecuteV2",
    "libacl_dvpp.so": "acldvppMalloc acldvppFree",
    "libacl_dvpp_mpi.so": "hi_mpi_dvpp_malloc hi_mpi_dvpp_free",
    "libdcmi.so": DCMI,
    "libdrvdsmi_host.so": "dsmi_get_hbm_info dsmi_get_memory_info dsmi_get_memory_info_v2",
}
LACKING = """
halMemCreate halMemRelease halMemPoolMalloc halMemPoolFree halMemAddressReserve halMemMap rtsMalloc rtMemAlloc
rtMemAllocManaged rtMemPoolMallocAsync rtsLaunchKernelWithHostArgs aclrtMallocAlign32 aclrtMallocWithCfg
aclrtLaunchKernelWithHostArgs aclrtMemPoolMallocAsync
"""


@cache
def library(wiring: str, name: str) -> tuple[frozenset[str], str, tuple[str, ...]]:
    """The names that a library exports, its soname, and what it needs."""
    with (native.simulator(wiring) / name).open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".dynsym")
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(table, SymbolTableSection)
        assert isinstance(dynamic, DynamicSection)
        names = frozenset(symbol.name for symbol in table.iter_symbols() if symbol["st_shndx"] != "SHN_UNDEF")
        tags = list(dynamic.iter_tags())
        soname = next(tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME")
        needed = tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED")
        return names, soname, needed


@pytest.mark.parametrize("wiring", WIRINGS)
@pytest.mark.parametrize("name", OWN)
def test_each_library_has_its_names(wiring: str, name: str) -> None:
    exported, soname, _ = library(wiring, name)
    assert set(OWN[name].split()) - exported == set()
    assert soname == name


@pytest.mark.parametrize("wiring", WIRINGS)
def test_no_name_is_exported_by_accident(wiring: str) -> None:
    for name in OWN:
        exported, _, _ = library(wiring, name)
        known = ("acl", "rt", "hal", "drv", "dcmi", "dsmi", "hi_mpi", "npu_sim_")
        assert [symbol for symbol in exported if not symbol.startswith(known)] == [], name


def test_implementations_of_acl_move_into_the_runtime() -> None:
    doors = {f"{name}Impl" for name in (ACL_MEMORY + ACL_WORK).split()}
    assert doors <= library("nested", "libacl_rt_impl.so")[0]
    assert not doors & library("nested", "libruntime.so")[0]
    assert doors <= library("fused", "libruntime.so")[0]
    assert not (native.simulator("fused") / "libacl_rt_impl.so").exists()


@pytest.mark.parametrize(
    ("wiring", "chain"),
    [
        ("nested", ("libascendcl.so", "libacl_rt.so", "libacl_rt_impl.so", "libruntime.so", "libascend_hal.so")),
        ("fused", ("libascendcl.so", "libacl_rt.so", "libruntime.so", "libascend_hal.so")),
        ("nested", ("libacl_op_compiler.so", "libascendcl.so")),
        ("nested", ("libdcmi.so", "libdrvdsmi_host.so")),
    ],
)
def test_libraries_need_each_other_in_a_chain(wiring: str, chain: tuple[str, ...]) -> None:
    for upper, lower in itertools.pairwise(chain):
        assert lower in library(wiring, upper)[2]


def test_an_older_release_lacks_names() -> None:
    exported = {name for lib in ("ascend_hal", "runtime", "acl_rt") for name in library("old", f"lib{lib}.so")[0]}
    assert set(LACKING.split()) & exported == set()
    with_them = {name for lib in ("ascend_hal", "runtime", "acl_rt") for name in library("nested", f"lib{lib}.so")[0]}
    assert set(LACKING.split()) <= with_them
    assert {"rtMallocManaged", "rtFreeManaged"} <= exported - with_them


def test_what_an_older_driver_lacks_the_runtime_does_not_support(machine: Machine) -> None:
    machine.wiring = "old"
    with machine.client() as client:
        assert not client.has("halMemCreate")
        assert not client.has("aclrtMallocAlign32")
        for name, arguments in (
            ("aclrtMallocPhysical", ("&h", 2 << 20, "&prop", 0)),
            ("aclrtReserveMemAddress", ("&p", 2 << 20, 0, 0, 0)),
            ("rtMallocPhysical", ("&h", 2 << 20, "&prop", 0)),
        ):
            assert client.call(name, *arguments).code == NOT_SUPPORTED
        client.do("aclrtMalloc", "&p", 64, 0)
        client.do("aclrtFree", "p")


REFUSED = 6
CALLS = [
    # a function in between, a call of the application, and what comes of it in each wiring
    ("rtMalloc", ("aclrtMalloc", "&p", 64, 0), {"nested": REFUSED, "fused": 0}),
    ("halMemAlloc", ("aclrtMalloc", "&p", 64, 0), {"nested": 207001, "fused": 207001}),
    ("halMemAlloc", ("rtMalloc", "&p", 64, 0, 33), {"nested": 207001, "fused": 207001}),
    ("rtDvppMallocWithFlag", ("rtDvppMalloc", "&p", 64, 6), {"nested": REFUSED, "fused": 0}),
    ("rtDvppMallocWithFlag", ("acldvppMalloc", "&p", 64), {"nested": REFUSED, "fused": 0}),
    ("rtKernelLaunchFwk", ("rtKernelLaunchEx", "&k", 32, 0, 0), {"nested": REFUSED, "fused": 0}),
    ("rtStarsTaskLaunchWithFlag", ("rtStarsTaskLaunch", "&k", 32, 0), {"nested": REFUSED, "fused": 0}),
]


@pytest.mark.parametrize(("between", "call", "codes"), CALLS)
def test_who_stands_in_between_sees_what_the_linker_lets_it(
    wired: Machine, between: str, call: tuple[str | int, ...], codes: dict[str, int]
) -> None:
    spy = native.simulator("nested").parent / "spies" / f"{between}.so"
    with wired.client(preload=str(spy)) as client:
        assert client.call(str(call[0]), *call[1:]).code == codes[Path(wired.wiring).name]
    with wired.client() as client:
        assert client.call(str(call[0]), *call[1:]).code == 0


def test_libraries_may_be_loaded_into_the_global_scope(wired: Machine) -> None:
    command = [str(wired.folder / "npu-client"), "--global", str(wired.folder / "libascendcl.so")]
    lines = f"aclrtSetDevice 0\naclrtMalloc &p 64 0\nhalMemAlloc &q 64 {flag()}\n"
    result = subprocess.run(command, env=wired.environment(), input=lines, capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["0", "0", "0"]


def test_depth_of_calls_is_counted_where_functions_are_entered(wired: Machine) -> None:
    with wired.client() as client:
        before = {name: client.calls(name) for name in ("aclrtMalloc", "rtMalloc", "halMemAlloc")}
        client.do("aclrtMalloc", "&p", 64, 0)
        client.do("rtMalloc", "&q", 64, 0, 33)
        after = {name: client.calls(name) - count for name, count in before.items()}
        assert after == {"aclrtMalloc": 1, "rtMalloc": 2, "halMemAlloc": 2}

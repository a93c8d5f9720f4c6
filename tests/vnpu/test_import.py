"""``import vnpu`` and every module of it need the standard library only: its edges import the rest when it is used."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import vnpu


def test_every_module_imports_without_third_parties() -> None:
    modules = sorted(module.name for module in pkgutil.walk_packages(vnpu.__path__, "vnpu."))
    assert {"vnpu.request", "vnpu.fit.__main__"} <= set(modules)
    program = (
        "import sys, importlib\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # Names that start with an underscore belong to the interpreter's own start (an editable install, a locale).
    assert [name for name in result.stdout.split() if not name.startswith("_")] == ["vnpu"]

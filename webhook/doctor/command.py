"""The command ``doctor``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from vnpu import terminal
from vnpu.kube import connect
from webhook.doctor import gather, report
from webhook.doctor.case import Case
from webhook.doctor.checks import examine
from webhook.doctor.finding import Severity

if TYPE_CHECKING:
    import argparse

WRONG: Final = 1
_AGENT: Final = "vnpu-doctor"


def run(options: argparse.Namespace) -> int:
    """Look at the cluster, and write what was found to standard output; returns the exit code.

    Returns:
        1 where a finding is an error, else 0.

    Raises:
        ConfigError: there is no kubeconfig, or it cannot be read.
        Unreachable: the API server cannot be reached.
        OutputError: standard output takes nothing.
    """
    cluster = connect(kubeconfig=options.kubeconfig, context=options.context, agent=_AGENT)
    try:
        dry_run_in = None if options.no_dry_run else options.dry_run_namespace
        snapshot = gather.take(cluster, options.namespace, dry_run_in)
    finally:
        cluster.close()
    findings = examine(Case(snapshot, options.namespace))
    with terminal.output() as stream:
        if options.json:
            stream.write(json.dumps(report.to_json(findings), indent=2) + "\n")
        else:
            stream.writelines(report.text(findings))
    return WRONG if any(finding.severity is Severity.ERROR for finding in findings) else 0

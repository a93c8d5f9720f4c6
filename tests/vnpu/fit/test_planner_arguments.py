"""The command line of the planner."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnpu.annotations.policies import CardPolicy, NodePolicy
from vnpu.fit.arguments import CardGroup, Output, SliceGroup, UsageError, parse


def test_everything_at_once() -> None:
    options = parse(
        [
            *("app.yaml", "--nodes", "nodes.yaml", "job.yaml", "--running", "-", "--what-if", "a.yaml"),
            *(
                "--nodes",
                "more.json",
                "--running",
                "pods.json",
                "--what-if",
                "b.yaml",
                "--policy",
                "spread",
                "--card-policy",
                "binpack",
                "-o",
                "json",
            ),
            *("--explain", "app-0", "--quiet", "--device-config", "d.yaml", "--config", "c.yaml", "last.yaml"),
        ]
    )
    assert options.manifests == (Path("app.yaml"), Path("job.yaml"), Path("last.yaml"))
    assert options.nodes == (Path("nodes.yaml"), Path("more.json"))
    assert options.what_if == (Path("a.yaml"), Path("b.yaml"))
    assert options.running == (Path("-"), Path("pods.json"))
    assert (options.device_config, options.config) == (Path("d.yaml"), Path("c.yaml"))
    assert (options.node_policy, options.card_policy) == (NodePolicy.SPREAD, CardPolicy.BINPACK)
    assert (options.output, options.explain, options.quiet) == (Output.JSON, "app-0", True)


def test_defaults() -> None:
    options = parse(["--card", "Ascend910B3x8", "--slice", "28672,20x3"])
    assert (options.node_policy, options.card_policy) == (NodePolicy.BINPACK, CardPolicy.SPREAD)
    assert (options.output, options.explain, options.quiet) == (Output.TABLE, None, False)
    assert (options.manifests, options.nodes, options.running) == ((), (), ())


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("28672,20x3", SliceGroup("28672", "20", 3)),
        ("28672,20", SliceGroup("28672", "20", 1)),
        ("8192x5", SliceGroup("8192", None, 5)),
        ("8192", SliceGroup("8192", None, 1)),
        ("10k, 5x2", SliceGroup("10k", "5", 2)),
        ("16Gix2", SliceGroup("16Gi", None, 2)),
    ],
)
def test_slices(text: str, group: SliceGroup) -> None:
    assert parse(["--card", "Ascend910B3", "--slice", text]).slices == (group,)


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("Ascend910B3x8", CardGroup("Ascend910B3", 8)),
        ("Ascend910B4-1x16", CardGroup("Ascend910B4-1", 16)),
        ("Ascend910B3", CardGroup("Ascend910B3", 1)),
        ("Box", CardGroup("Box", 1)),
        ("Boxx2", CardGroup("Box", 2)),
    ],
)
def test_cards(text: str, group: CardGroup) -> None:
    assert parse(["--card", text, "--slice", "8192"]).cards == (group,)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "no nodes"),
        ("app.yaml", "no nodes"),
        ("--card Ascend910B3x8", "nothing to place"),
        ("--nodes nodes.yaml", "nothing to place"),
        ("--card Ascend910B3x0 --slice 8192", "a count from 1 to 1024"),
        ("--card Ascend910B3x1025 --slice 8192", "a count from 1 to 1024"),
        ("--card Ascend910B3 --slice 8192x1000000000", "a count from 1 to 100000"),
        ("--card Ascend910B3 --slice 8192x99999999999999999999", "a count from 1 to 100000"),
        ("--card Ascend910B3 --slice 8192,", '8192,: "": not a Kubernetes quantity'),
        ("--card Ascend910B3 --slice ,20", ',20: "": not a Kubernetes quantity'),
        ("--card Ascend910B3 --slice x2", 'x2: "x2": not a Kubernetes quantity'),
        ("--card Ascend910B3 --slice 8192,20x3x2", '8192,20x3x2: "20x3": not a Kubernetes quantity'),
        ("--card Ascend910B3 --slice 8192,20,5", '8192,20,5: "20,5": not a Kubernetes quantity'),
        ("--nodes - -", "standard input"),
        ("--nodes - --nodes - a.yaml", "standard input"),
        ("--card Ascend910B3 --running - -", "standard input"),
        ("--card Ascend910B3 --running - --running - a.yaml", "standard input"),
        ("--card Ascend910B3 a.yaml --policy fastest", "choose from 'binpack', 'spread'"),
        ("--card Ascend910B3 a.yaml -o pdf", "choose from 'table', 'json', 'yaml', 'html', 'svg'"),
        ("--card Ascend910B3 a.yaml --node x", "unrecognized arguments: --node"),
        ("--card", "expected one argument"),
    ],
)
def test_bad_usage_is_one_line(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse(line.split())
    assert "\n" not in str(caught.value)

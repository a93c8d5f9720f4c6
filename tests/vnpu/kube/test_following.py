"""Lists and watches that go on whatever happens to them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.api_stand_in import ApiStandIn, Fault
from tests.support.odd_servers import dripping, kubeconfig
from vnpu.kube import (
    NODES,
    SECRETS,
    Cluster,
    Event,
    Follower,
    Forbidden,
    Listing,
    Lost,
    Unreachable,
    Watch,
    connect,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECRET: dict[str, Any] = {"metadata": {"name": "one", "namespace": "n"}, "data": {}}


class TestFollowing:
    def test_goes_on_where_a_watch_broke(self, api: ApiStandIn, cluster: Cluster) -> None:
        steps = Steps(cluster, lambda: api.put(SECRETS, SECRET))
        assert steps.next(Event).object["metadata"]["name"] == "one"
        api.cut_watches()
        assert "watch" in str(steps.next(Lost).error)
        api.remove(SECRETS, "one", "n")
        assert steps.next(Event).type == "DELETED"
        steps.end()
        assert len([request for request in api.requests if "watch" not in request.query]) == 1

    def test_lists_again_when_the_server_has_forgotten(self, api: ApiStandIn, cluster: Cluster) -> None:
        steps = Steps(cluster, lambda: None)
        api.fail(Fault("GET", "watch=true", act=lambda: (api.put(SECRETS, SECRET), api.compact())))
        assert [one["metadata"]["name"] for one in steps.next(Listing).items] == ["one"]
        steps.end()

    def test_outlives_a_server_that_is_away(self, api: ApiStandIn, cluster: Cluster) -> None:
        steps = Steps(cluster, lambda: api.put(SECRETS, SECRET))
        steps.next(Event)
        api.away()
        steps.next(Lost)
        api.remove(SECRETS, "one", "n")
        api.back()
        while isinstance(step := steps.any(), Lost):
            assert step.error.passing
        assert isinstance(step, Event)
        assert step.type == "DELETED"
        steps.end()

    def test_a_server_that_ends_every_watch_is_not_asked_in_a_loop(self, cluster: Cluster) -> None:
        ended = [Watch(Ended()) for _ in range(4)]
        follower = Follower(lambda: cluster.list(SECRETS), lambda _: ended.pop())
        begun = time.monotonic()
        with pytest.raises(IndexError):
            list(follower)
        assert time.monotonic() - begun > 0.1 + 0.2 + 0.4 + 0.8

    def test_what_is_forbidden_is_told(self, api: ApiStandIn, cluster: Cluster) -> None:
        api.fail(Fault("GET", status=403, reason="Forbidden"))
        follower = cluster.follow(SECRETS, "n")
        step = next(iter(follower))
        assert isinstance(step, Lost)
        assert isinstance(step.error, Forbidden)
        follower.close()

    def test_bookmarks_move_on_past_what_others_did(self, tmp_path: Path) -> None:
        with ApiStandIn(bookmark_s=0.05) as api:
            cluster = api.cluster(tmp_path)
            start = cluster.list(SECRETS, "n").resource_version
            for number in range(5):
                api.put(NODES, {"metadata": {"name": f"node-{number}"}})
            bookmark = next(iter(cluster.watch(SECRETS, start, namespace="n")))
            assert bookmark.type == "BOOKMARK"
            assert int(bookmark.resource_version) == int(start) + 5
            cluster.close()

    def test_a_silent_watch_is_noticed(self, api: ApiStandIn, cluster: Cluster) -> None:
        api.silence()
        start = cluster.list(SECRETS).resource_version
        api.put(SECRETS, SECRET)
        with pytest.raises(Unreachable, match="timed out"):
            list(cluster.watch(SECRETS, start, silence_s=0.5))

    def test_a_closed_one_yields_nothing(self, api: ApiStandIn, cluster: Cluster) -> None:
        follower = cluster.follow(SECRETS)
        follower.close()
        assert list(follower) == []
        watch = cluster.watch(SECRETS, cluster.list(SECRETS).resource_version)
        watch.close()
        assert list(watch) == []
        assert len(api.requests) == 2

    @pytest.mark.parametrize("line", [b"{}", b"nonsense", b'{"type": "ADDED", "object": {}}'])
    def test_a_line_that_is_no_event_breaks_the_watch(self, tmp_path: Path, line: bytes) -> None:
        with dripping(line + b"\n") as port:
            path = tmp_path / "kubeconfig"
            path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{port}")))
            with pytest.raises(Unreachable, match="no event"):
                list(connect(kubeconfig=str(path)).watch(SECRETS, "1"))


class Ended:
    """A stream that has ended."""

    def lines(self) -> Iterator[bytes]:
        return iter(())

    def close(self) -> None:
        """Nothing is left to be closed."""


class Steps:
    """What somebody who follows Secrets sees, step by step."""

    def __init__(self, cluster: Cluster, then: Callable[[], object]) -> None:
        self._follower = cluster.follow(SECRETS, "n")
        self._steps = iter(self._follower)
        self.next(Listing)
        then()

    def any(self) -> object:
        return next(self._steps)

    def next(self, kind: type) -> Any:
        step = self.any()
        assert isinstance(step, kind), step
        return step

    def end(self) -> None:
        self._follower.close()
        assert next(self._steps, None) is None

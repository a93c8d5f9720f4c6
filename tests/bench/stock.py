"""The other baseline: gunicorn's own threaded worker, as it comes, under the same bare Flask view."""

from __future__ import annotations

import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication

from certs.authority import make_authority, make_serving, write_pair
from tests.bench.bare import bare_app

if TYPE_CHECKING:
    from flask import Flask


class Stock(BaseApplication):  # type: ignore[misc]
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__()

    def load_config(self) -> None:
        settings = {
            "bind": "127.0.0.1:0",
            "certfile": str(self.folder / "tls.crt"),
            "keyfile": str(self.folder / "tls.key"),
            "worker_class": "gthread",
            "threads": 8,
            "keepalive": 120,
            "loglevel": "error",
            "control_socket_disable": True,
            "post_worker_init": self.tell_ready,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        return bare_app()

    def tell_ready(self, worker: Any) -> None:
        url = "https://{}:{}".format(*worker.sockets[0].getsockname())
        sys.stdout.write(json.dumps({"message": "ready", "url": url, "ca": str(self.folder / "ca.crt")}) + "\n")
        sys.stdout.flush()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        now = datetime.now(UTC)
        authority = make_authority("bench", now=now)
        serving = make_serving(authority, dns_names=["localhost"], ip_addresses=["127.0.0.1"], now=now)
        write_pair(serving, folder / "tls.crt", folder / "tls.key")
        (folder / "ca.crt").write_bytes(authority.certificate)
        Stock(folder).run()


if __name__ == "__main__":
    main()

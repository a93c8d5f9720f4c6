"""The application: HTTP in, the engine's verbs, HTTP out."""

from __future__ import annotations

import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from flask import Flask, Response, request

from vnpu.errors import InputError
from webhook.extender import wire
from webhook.extender.binding import BindError
from webhook.extender.metrics import MEDIA_TYPE, Outcome, Verb
from webhook.logs import LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.extender.engine import Engine
    from webhook.extender.metrics import Metrics

LARGEST_BODY: Final = 64 * 2**20
"""Bytes. The names of 5,000 nodes take 0.2 MB, whole Nodes some 10 KB each."""

Answered = tuple[Outcome, bytes]
"""What came of a request, and the body that answers it."""

_NOT_SYNCED: Final = "the extender does not know the cluster yet: it has just started"


def create_app(engine: Engine, metrics: Metrics) -> Flask:
    """The application.

    Args:
        engine: what answers.
        metrics: where requests are counted.
    """
    app = Flask("extender", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY

    def served(verb: Verb) -> Response:
        start = time.perf_counter()
        status = HTTPStatus.OK
        try:
            outcome, body = _ANSWERS[verb](engine, request.get_data(cache=False))
        except InputError as error:
            outcome, status, body = Outcome.UNREADABLE, HTTPStatus.BAD_REQUEST, wire.failed(str(error))
        metrics.count(verb, outcome, time.perf_counter() - start)
        return Response(body, status, content_type="application/json")

    def ready() -> Response:
        if engine.synced:
            return _text("ok", HTTPStatus.OK)
        return _text(_NOT_SYNCED, HTTPStatus.SERVICE_UNAVAILABLE)

    for verb in _ANSWERS:
        app.add_url_rule(f"/{verb}", verb, partial(served, verb), methods=["POST"])
    app.add_url_rule("/healthz", "healthz", lambda: _text("ok", HTTPStatus.OK))
    app.add_url_rule("/readyz", "readyz", ready)
    app.add_url_rule("/metrics", "metrics", lambda: Response(metrics.exposed(), content_type=MEDIA_TYPE))
    return app


def _filter(engine: Engine, body: bytes) -> Answered:
    question = wire.read_question(body)
    if not engine.synced:
        return Outcome.NOT_SYNCED, wire.failed(_NOT_SYNCED)
    answer = engine.filter_nodes(question.pod, question.names)
    return Outcome.DONE if answer.fits else Outcome.REFUSED, wire.filtered(question, answer)


def _prioritize(engine: Engine, body: bytes) -> Answered:
    question = wire.read_question(body)
    return Outcome.DONE, wire.scored(engine.scores(question.pod, question.names))


def _bind(engine: Engine, body: bytes) -> Answered:
    order = wire.read_order(body)
    if not engine.synced:
        return Outcome.NOT_SYNCED, wire.failed(_NOT_SYNCED)
    fields = {"pod": f"{order.namespace}/{order.name}", "uid": order.uid, "node": order.node}
    try:
        engine.bind(order)
    except BindError as error:
        LOGGER.warning("not bound", extra={"fields": fields | {"error": str(error)}})
        return Outcome.REFUSED, wire.failed(str(error))
    LOGGER.info("bound", extra={"fields": fields})
    return Outcome.DONE, wire.failed("")


def _text(text: str, status: HTTPStatus) -> Response:
    return Response(f"{text}\n", status, content_type="text/plain; charset=utf-8")


_ANSWERS: Final[dict[Verb, Callable[[Engine, bytes], Answered]]] = {
    Verb.FILTER: _filter,
    Verb.PRIORITIZE: _prioritize,
    Verb.BIND: _bind,
}

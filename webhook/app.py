"""The application: HTTP in, :func:`webhook.review.review`, HTTP out.

Flask serves what people and probes ask for. The two admission endpoints stand before it as plain WSGI: on a pod of 7 KB
Flask's routing, request and response objects would cost as much as the whole judgement.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from webhook import wire
from webhook.logs import LOGGER, log_answer
from webhook.metrics import MEDIA_TYPE
from webhook.review import Answer, Endpoint, review, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from webhook.metrics import Metrics
    from webhook.review import Context

_TEXT: Final = "text/plain; charset=utf-8"
_METHOD: Final = "POST"


def create_app(context: Callable[[], Context], metrics: Metrics, unready: Callable[[], str] = str) -> Flask:
    """The application.

    Args:
        context: what to judge by, asked for once a review, so that it may change while the server runs.
        metrics: where reviews are counted.
        unready: why the server is not ready, ``""`` where it is.
    """
    app = Flask("webhook", static_folder=None)

    def alive() -> Response:
        return _text("ok", HTTPStatus.OK)

    def ready() -> Response:
        reason = unready()
        return _text(reason or "ok", HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK)

    def exposed() -> Response:
        return Response(metrics.exposed(), content_type=MEDIA_TYPE)

    for path, view in (("/healthz", alive), ("/readyz", ready), ("/metrics", exposed)):
        app.add_url_rule(path, path, view, methods=["GET"], provide_automatic_options=False)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _failed)
    app.wsgi_app = _Reviews(app.wsgi_app, context, metrics)  # type: ignore[method-assign]
    return app


class _Reviews:
    """The admission endpoints; every other path is left to the application behind them."""

    def __init__(self, behind: WSGIApplication, context: Callable[[], Context], metrics: Metrics) -> None:
        self._behind = behind
        self._context = context
        self._metrics = metrics
        self._endpoints = {f"/{endpoint.value}": endpoint for endpoint in Endpoint}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        endpoint = self._endpoints.get(environ.get("PATH_INFO", ""))
        if endpoint is None:
            return self._behind(environ, start_response)
        if environ["REQUEST_METHOD"] != _METHOD:
            return _text("POST is expected", HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": _METHOD})(environ, start_response)
        start = time.perf_counter()
        answer = _answer(environ, endpoint, self._context())
        seconds = time.perf_counter() - start
        self._metrics.count(answer, seconds)
        log_answer(answer, seconds * 1000)
        headers = [("Content-Type", answer.media_type), ("Content-Length", str(len(answer.body)))]
        start_response(f"{answer.status.value} {answer.status.phrase}", headers)
        return [answer.body]


def _answer(environ: WSGIEnvironment, endpoint: Endpoint, context: Context) -> Answer:
    try:
        length = wire.body_length(environ.get("CONTENT_LENGTH"), environ.get("HTTP_TRANSFER_ENCODING"))
        body = environ["wsgi.input"].read(length)
        wire.check_media_type(environ.get("CONTENT_TYPE"), environ.get("HTTP_CONTENT_ENCODING"))
    except wire.UnreadableError as error:
        return unreadable(endpoint, error)
    return review(body, endpoint, context)


def _refused(error: HTTPException) -> Response:
    """Werkzeug's errors (404, 405, ...) as a line of text, with their headers but not as a page."""
    headers = {name: value for name, value in error.get_headers() if name != "Content-Type"}
    return _text(error.name, HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR), headers)


def _failed(error: Exception) -> Response:
    LOGGER.error("request failed", extra={"fields": {"path": request.path}}, exc_info=error)
    return _text("internal error; the log tells the cause", HTTPStatus.INTERNAL_SERVER_ERROR)


def _text(text: str, status: HTTPStatus, headers: dict[str, str] | None = None) -> Response:
    return Response(f"{text}\n", status, headers, content_type=_TEXT)

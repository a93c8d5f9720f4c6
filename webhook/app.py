"""The Flask application: HTTP in, :func:`webhook.review.review`, HTTP out."""

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
    from collections.abc import Callable

    from webhook.metrics import Metrics
    from webhook.review import Context

_TEXT: Final = "text/plain; charset=utf-8"


def create_app(context: Callable[[], Context], metrics: Metrics) -> Flask:
    """The application.

    Args:
        context: what to judge by, asked for once a review, so that it may change while the server runs.
        metrics: where reviews are counted.
    """
    app = Flask("webhook", static_folder=None)

    def endpoint(which: Endpoint) -> Callable[[], Response]:
        def view() -> Response:
            start = time.perf_counter()
            answer = _answer(which, context())
            seconds = time.perf_counter() - start
            metrics.count(answer, seconds)
            log_answer(answer, seconds * 1000)
            return Response(answer.body, answer.status, content_type=answer.media_type)

        return view

    def alive() -> Response:
        return _text("ok", HTTPStatus.OK)

    def exposed() -> Response:
        return Response(metrics.exposed(), content_type=MEDIA_TYPE)

    for which in Endpoint:
        _route(app, f"/{which.value}", "POST", endpoint(which))
    _route(app, "/healthz", "GET", alive)
    _route(app, "/readyz", "GET", alive)
    _route(app, "/metrics", "GET", exposed)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(Exception, _failed)
    return app


def _route(app: Flask, path: str, method: str, view: Callable[[], Response]) -> None:
    app.add_url_rule(path, path, view, methods=[method], provide_automatic_options=False)


def _answer(which: Endpoint, context: Context) -> Answer:
    # The WSGI environment is read directly: Flask's own accessors buffer and copy what is needed here once.
    environ = request.environ
    try:
        length = wire.body_length(environ.get("CONTENT_LENGTH"), environ.get("HTTP_TRANSFER_ENCODING"))
        body = environ["wsgi.input"].read(length)
        wire.check_media_type(environ.get("CONTENT_TYPE"), environ.get("HTTP_CONTENT_ENCODING"))
    except wire.UnreadableError as error:
        return unreadable(which, error)
    return review(body, which, context)


def _refused(error: HTTPException) -> Response:
    """Werkzeug's errors (404, 405, ...) as a line of text, with their headers but not as a page."""
    response = _text(error.name, HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR))
    for name, value in error.get_headers():
        if name.lower() not in ("content-type", "content-length"):
            response.headers[name] = value
    return response


def _failed(error: Exception) -> Response:
    LOGGER.error("request failed", extra={"fields": {"path": request.path}}, exc_info=error)
    return _text("internal error; the log tells the cause", HTTPStatus.INTERNAL_SERVER_ERROR)


def _text(text: str, status: HTTPStatus) -> Response:
    return Response(f"{text}\n", status, content_type=_TEXT)

"""The baseline for the server: the same gunicorn, TLS and worker under a Flask view that only parses the body."""

from __future__ import annotations

from flask import Flask, Response, request

from webhook import server

_ANSWER = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true}}'


def bare_app() -> Flask:
    app = Flask("bare", static_folder=None)

    @app.post("/mutate")
    def mutate() -> Response:
        request.get_json()
        return Response(_ANSWER, content_type="application/json")

    return app


if __name__ == "__main__":
    server.serve(server.Options(), lambda *_: bare_app())

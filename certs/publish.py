"""The edge of certs: the Secret and the caBundles on a cluster.

What this needs of the API server, and no more:

=====================================================  =======  ===========  =======================================
resource                                               scope    verbs        names
=====================================================  =======  ===========  =======================================
secrets                                                Role     get, update  that of ``--secret``
secrets                                                Role     create       none: RBAC cannot name what is not there
mutatingwebhookconfigurations (admissionregistration)  cluster  get, patch   those of ``--webhook-configurations``
validatingwebhookconfigurations (the same group)       cluster  get, patch   the same
=====================================================  =======  ===========  =======================================

They are read every few seconds and not watched: three small reads cost the API server less than three watches, notice
a new webhook entry within that time whatever happened in between, and need neither list nor watch. ``check`` needs get
alone.

A caBundle is changed by a JSON patch of that one path in each webhook, guarded by a ``test`` of the resource version.
It is never applied: an applied caBundle would break a later removal of the webhook by ``helm upgrade``.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from certs.authority import service_names
from certs.rotation import WRITES, Entry, Step, View, carry_out, plan
from certs.trust import read_trust, write_trust
from vnpu.errors import VnpuError, few
from vnpu.kube import MUTATING, SECRETS, VALIDATING, Forbidden, NotFound
from vnpu.names import CERTIFICATES_OWNER, CERTIFICATES_TYPE, OWNER_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from certs.trust import Trust
    from vnpu.kube import Cluster, Object, Resource


class ForeignSecretError(VnpuError):
    """The Secret is somebody else's: it is left alone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the certificates of one installation stand.

    Attributes:
        namespace: of Service and Secret.
        service: under which API servers call.
        secret: its name.
        configurations: names of webhook configurations, of both kinds.
    """

    namespace: str
    service: str
    secret: str
    configurations: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The DNS names of the Service."""
        return service_names(self.service, self.namespace)


@dataclass(frozen=True, slots=True)
class Found:
    """What stands on the cluster.

    Attributes:
        secret: the Secret; None where there is none.
        trust: what it holds.
        tidy: whether it holds exactly that.
        configurations: the webhook configurations that exist; None where they may not be read.
        unreadable: why not.
    """

    secret: Object | None
    trust: Trust | None
    tidy: bool
    configurations: tuple[tuple[Resource, Object], ...] | None
    unreadable: Forbidden | None = None

    @property
    def entries(self) -> tuple[Entry, ...] | None:
        """Every webhook of them."""
        if self.configurations is None:
            return None
        return tuple(
            Entry(f"{resource.kind} {configuration['metadata']['name']}: {webhook.get('name', index)}", bundle)
            for resource, configuration in self.configurations
            for index, (webhook, bundle) in enumerate(_webhooks(configuration))
        )

    @property
    def versions(self) -> tuple[str, ...]:
        """What changes whenever the Secret or a configuration does."""
        objects = [one for one in (self.secret, *(one for _, one in self.configurations or ())) if one is not None]
        return tuple(f"{one['metadata']['uid']}/{one['metadata']['resourceVersion']}" for one in objects)


def look(cluster: Cluster, place: Place, now: datetime) -> Found:
    """Read what stands on the cluster: the Secret first, so that a bundle is never older than what it is held against.

    Raises:
        KubeError: something cannot be read; for configurations that may not be, see :class:`Found`.
        ForeignSecretError: it is not ours.
    """
    secret = _optional(cluster, SECRETS, place.secret, place.namespace)
    data = _data(secret, place) if secret is not None else {}
    trust = read_trust(data, now) if secret is not None else None
    tidy = trust is None or trust.signer is None or trust.serving is None or write_trust(trust) == data
    try:
        read = [
            (kind, _optional(cluster, kind, name)) for name in place.configurations for kind in (MUTATING, VALIDATING)
        ]
    except Forbidden as error:
        return Found(secret, trust, tidy, None, error)
    return Found(secret, trust, tidy, tuple((kind, found) for kind, found in read if found is not None))


def view_of(
    found: Found,
    place: Place,
    now: datetime,
    *,
    propagation: timedelta,
    steady: timedelta,
    remembered: bytes,
    renew: bool = False,
) -> View:
    """What was found, for :func:`certs.rotation.plan`."""
    return View(
        now=now,
        names=place.names,
        trust=found.trust,
        tidy=found.tidy,
        entries=found.entries,
        steady=steady,
        remembered=remembered,
        renew=renew,
        propagation=propagation,
    )


def advance(cluster: Cluster, place: Place, found: Found, view: View, *, secret_only: bool = False) -> tuple[Step, str]:
    """Take the next step, if there is one; what it found is outdated then.

    Args:
        cluster: the API server.
        place: where things stand.
        found: as :func:`look` returned it.
        view: of the same.
        secret_only: leave the caBundles alone.

    Returns:
        The step and why it was taken.

    Raises:
        Conflict: somebody else was faster. Look again.
        Invalid: the same, for a caBundle.
        KubeError: the write failed; its outcome may be unknown. Look again.
    """
    step, why = plan(view)
    if step in WRITES:
        _write_secret(cluster, place, found.secret, write_trust(carry_out(step, view)))
    elif step is Step.PUBLISH and not secret_only:
        assert found.configurations is not None
        assert found.trust is not None
        for resource, configuration in found.configurations:
            if operations := patch(configuration, found.trust.bundle):
                cluster.patch(resource, configuration["metadata"]["name"], operations)
    elif step is Step.STUCK:
        why = f"{found.unreadable}; {why}"
    return step, why


def patch(configuration: Object, bundle: bytes) -> list[dict[str, Any]]:
    """The JSON patch that publishes a bundle in every webhook of a configuration; empty where it stands there."""
    text = base64.b64encode(bundle).decode()
    operations = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": text}
        for index, (_, published) in enumerate(_webhooks(configuration))
        if published != bundle
    ]
    guard = {"op": "test", "path": "/metadata/resourceVersion", "value": configuration["metadata"]["resourceVersion"]}
    return [guard, *operations] if operations else []


def _write_secret(cluster: Cluster, place: Place, secret: Object | None, data: dict[str, bytes]) -> None:
    metadata: Object = (
        dict(secret["metadata"]) if secret is not None else {"name": place.secret, "namespace": place.namespace}
    )
    metadata["labels"] = {**(metadata.get("labels") or {}), OWNER_LABEL: CERTIFICATES_OWNER}
    written = {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": metadata,
        # A type cannot be changed. The chart makes an empty Secret of another one, so that Helm removes it in the end.
        "type": CERTIFICATES_TYPE if secret is None else secret["type"],
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    if secret is None:
        cluster.create(SECRETS, written, place.namespace)
    else:
        cluster.replace(SECRETS, written)


def _data(secret: Object, place: Place) -> dict[str, bytes]:
    """The data of the Secret, decoded.

    Raises:
        ForeignSecretError: it is not ours.
    """
    kind, owner = secret.get("type"), (secret["metadata"].get("labels") or {}).get(OWNER_LABEL)
    data: dict[str, str] = secret.get("data") or {}
    if owner != CERTIFICATES_OWNER:
        raise ForeignSecretError(
            f"Secret {place.namespace}/{place.secret} is not ours: type {kind}, {OWNER_LABEL}: {owner}, with "
            f"{few(sorted(data)) or 'no data'}; it is left alone. "
            f"Delete it, name another Secret, or serve what it holds with --certs files"
        )
    return {name: base64.b64decode(value) for name, value in data.items()}


def _webhooks(configuration: Object) -> Iterator[tuple[Object, bytes]]:
    for webhook in configuration.get("webhooks") or ():
        yield webhook, base64.b64decode(webhook["clientConfig"].get("caBundle") or "")


def _optional(cluster: Cluster, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
    try:
        return cluster.get(resource, name, namespace)
    except NotFound:
        return None

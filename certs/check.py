"""Whether what is served, what the Secret holds and what is published agree, and for how long it will do."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

from certs.publish import ForeignSecretError, look
from certs.rotation import serving_fault
from certs.trust import Certificate, read_authorities, read_certificates
from vnpu.kube import KubeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from certs.publish import Found, Place
    from certs.trust import Trust
    from vnpu.kube import Cluster

_TIMEOUT_S: Final = 10.0


def check(cluster: Cluster, place: Place, address: tuple[str, int] | None, now: datetime) -> list[str]:
    """What is wrong, one sentence each; nothing where all is well.

    Args:
        cluster: the API server.
        place: where things stand on it.
        address: host and port of a server to call; None calls nobody.
        now: the time.
    """
    try:
        found = look(cluster, place, now)
    except (KubeError, ForeignSecretError) as error:
        return [str(error)]
    where = f"Secret {place.namespace}/{place.secret}"
    if found.trust is None:
        return [f"{where}: there is none"]
    if found.trust.signer is None:
        return [f"{where} holds no CA with its key"]
    faults = [f"{where}: {fault}" for fault in _of_secret(found.trust, place, now)]
    faults += _of_bundles(found, place)
    if address is not None:
        faults += [f"{address[0]}:{address[1]}: {fault}" for fault in _of_served(found.trust, place, address)]
    return faults


def _of_secret(trust: Trust, place: Place, now: datetime) -> Iterator[str]:
    assert trust.signer is not None
    if not trust.signer.certificate.usable(now):
        yield f"the CA has expired or is not valid yet ({trust.signer.certificate.ends.isoformat()})"
    elif now >= trust.signer.certificate.renewal:
        yield f"less than a third of the CA's life is left ({trust.signer.certificate.ends.isoformat()})"
    if fault := serving_fault(trust, place.names, now):
        yield fault


def _of_bundles(found: Found, place: Place) -> Iterator[str]:
    assert found.trust is not None
    if found.entries is None:
        yield f"the caBundles cannot be read: {found.unreadable}"
        return
    if not found.entries:
        yield f"there is no webhook in {', '.join(place.configurations)}"
    for entry in found.entries:
        published = read_authorities(entry.bundle)
        if not published:
            yield f"{entry.name}: the caBundle holds no CA"
        elif missing := [one for one in found.trust.authorities if one not in published]:
            yield f"{entry.name}: the caBundle lacks the CA {', '.join(one.serial for one in missing)} of the Secret"
        elif entry.bundle != found.trust.bundle:
            yield f"{entry.name}: the caBundle is not that of the Secret"


def _of_served(trust: Trust, place: Place, address: tuple[str, int]) -> Iterator[str]:
    """What a client finds that trusts the bundle and checks the name, as an API server does."""
    name = f"{place.service}.{place.namespace}.svc"
    context = ssl.create_default_context(cadata=trust.bundle.decode())
    try:
        with (
            socket.create_connection(address, _TIMEOUT_S) as connection,
            context.wrap_socket(connection, server_hostname=name) as encrypted,
        ):
            served = encrypted.getpeercert(binary_form=True)
    except OSError as error:
        yield str(error)
        return
    (found,) = read_certificates(ssl.DER_cert_to_PEM_cert(served or b"").encode())
    if trust.serving is not None and found != trust.serving.certificate:
        yield f"serves certificate {_named(found)}; the Secret holds {_named(trust.serving.certificate)}"


def _named(certificate: Certificate) -> str:
    return f"{certificate.serial} (until {certificate.ends.isoformat()})"

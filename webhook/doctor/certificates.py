"""The caBundles against the certificate that the Secret holds; cryptography is loaded with this module."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509

from certs.authority import service_names
from certs.trust import BUNDLE, SERVING_CERTIFICATE, read_authorities, read_certificates
from vnpu.errors import few
from vnpu.kube import SECRETS
from webhook.doctor.finding import Fault, Severity
from webhook.doctor.programs import Role
from webhook.doctor.snapshot import dig, items, label, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certs.trust import Certificate
    from vnpu.kube import Object
    from webhook.doctor.case import Case
    from webhook.doctor.finding import Finding

NO_SECRET: Final = Fault(
    "certificate-missing",
    Severity.ERROR,
    "tls.mode self: look into the webhook's log (certs), which makes it; certManager: describe the Certificate; files: "
    "make the Secret",
)
NO_BUNDLE: Final = Fault(
    "ca-bundle-missing",
    Severity.ERROR,
    "tls.mode self: the webhook publishes it within seconds of its start, so look into its log (certs) for what it may "
    "not write; files: set the caBundle yourself",
)
FOREIGN_BUNDLE: Final = Fault(
    "ca-bundle-foreign",
    Severity.ERROR,
    "delete a pod of the webhook: it publishes its CA again at its start. If the bundle comes back, find who writes "
    "it: kubectl get {kind} {name} -o yaml --show-managed-fields",
)
BUNDLE_BEHIND: Final = Fault(
    "ca-bundle-behind",
    Severity.WARNING,
    "nothing, if it is gone in a minute: a new CA is being published; else look into the webhook's log (certs)",
)
EXPIRED: Final = Fault(
    "certificate-expired", Severity.ERROR, "look into the webhook's log (certs) for what keeps it from being renewed"
)
EXPIRES: Final = Fault(
    "certificate-expires-soon",
    Severity.WARNING,
    "it should have been renewed: look into the webhook's log (certs), and at its rights on Secret {name}",
)
OTHER_NAME: Final = Fault(
    "certificate-for-other-name",
    Severity.ERROR,
    "issue it anew for {name}: by this name the API server calls the webhook",
)


def certificates(case: Case) -> Iterator[Finding]:
    """Whether the API server can trust what the webhook serves, and for how long."""
    for program in case.running(Role.WEBHOOK)[:1]:
        name = program.option("secret") or _mounted_secret(program.spec)
        if name is None:
            continue
        subject = named(SECRETS, name, case.namespace)
        secret = case.snapshot.find(SECRETS, name, case.namespace)
        chain = read_certificates(_data(secret, SERVING_CERTIFICATE))
        if not chain:
            yield NO_SECRET.at(subject, "it is not there" if secret is None else f"{SERVING_CERTIFICATE} holds none")
        else:
            yield from _served(case, subject, name, chain[0])
        known = read_authorities(_data(secret, BUNDLE))
        for configuration in (*case.mutating, *case.validating):
            yield from _published(configuration, chain, known if program.option("secret") else ())


def _served(case: Case, subject: str, secret: str, leaf: Certificate) -> Iterator[Finding]:
    now = case.snapshot.now
    if not leaf.usable(now):
        yield EXPIRED.at(subject, f"the certificate ended or begins later (it ends {leaf.ends:%Y-%m-%d %H:%M} UTC)")
    elif now >= leaf.renewal:
        seen = f"less than a third of the certificate's life is left (it ends {leaf.ends:%Y-%m-%d %H:%M} UTC)"
        yield EXPIRES.at(subject, seen, name=secret)
    for service in case.services:
        wanted = next(name for name in service_names(service, case.namespace) if name.endswith(".svc"))
        if wanted not in _names(leaf):
            seen = f"the certificate names {few(_names(leaf)) or 'nothing'}, not {wanted}"
            yield OTHER_NAME.at(subject, seen, name=wanted)


def _published(
    configuration: Object, chain: tuple[Certificate, ...], known: tuple[Certificate, ...]
) -> Iterator[Finding]:
    without, foreign, behind = [], [], []
    for webhook in items(configuration.get("webhooks")):
        bundle = read_authorities(_decoded(dig(webhook, "clientConfig", "caBundle")))
        name = str(webhook.get("name"))
        if not bundle:
            without.append(name)
        elif chain and not any(authority.signed(one) for authority in bundle for one in chain):
            foreign.append(name)
        elif any(one not in bundle for one in known):
            behind.append(name)
    if without:
        yield NO_BUNDLE.at(label(configuration), f"the caBundle holds no CA: {few(without)}")
    if foreign:
        seen = f"no CA of the caBundle signed the certificate of the Secret: {few(foreign)}"
        facts = {"kind": configuration["kind"].lower(), "name": configuration["metadata"]["name"]}
        yield FOREIGN_BUNDLE.at(label(configuration), seen, **facts)
    if behind:
        yield BUNDLE_BEHIND.at(label(configuration), f"the caBundle lacks a CA of the Secret: {few(behind)}")


def _mounted_secret(spec: Object) -> str | None:
    for volume in items(spec.get("volumes")):
        if volume.get("name") == "tls":
            name = dig(volume, "secret", "secretName")
            return name if isinstance(name, str) else None
    return None


def _names(leaf: Certificate) -> list[str]:
    try:
        found = leaf.parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return found.value.get_values_for_type(x509.DNSName)


def _data(secret: Object | None, key: str) -> bytes:
    return _decoded(dig(secret, "data", key))


def _decoded(text: Any) -> bytes:
    try:
        return base64.b64decode(text or "")
    except (binascii.Error, TypeError, ValueError):
        return b""

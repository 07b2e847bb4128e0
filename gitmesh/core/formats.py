"""The formats that a contract may name, each with a check of our own: none asks a network or a locale."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII | re.IGNORECASE)
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
_URI = re.compile(r"[a-z][a-z0-9+.-]*:(?://(?:[^\s/?#]+|(?=/))|(?!//))[^\s<>\"\\^`{|}]*", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])", re.ASCII)


def _hostname(value: str) -> bool:
    """A name of DNS, in Unicode or not, with or without the last dot."""
    try:
        plain = value if value.isascii() else value.encode("idna").decode("ascii")
    except UnicodeError:
        return False
    plain = plain.removesuffix(".")
    return len(plain) <= 253 and all(_LABEL.fullmatch(label) for label in plain.split("."))


def _email(value: str) -> bool:
    local, at, host = value.rpartition("@")
    return bool(at) and len(local) <= 64 and bool(_LOCAL.fullmatch(local)) and _hostname(host)


def _uri(value: str) -> bool:
    return _URI.fullmatch(value) is not None and not value.endswith(":")


def _ipv4(value: str) -> bool:
    return _is(IPv4Address, value)


def _ipv6(value: str) -> bool:
    return "%" not in value and _is(IPv6Address, value)


def _is(kind: Callable[[str], object], value: str) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True


FORMATS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "hostname": ("a host name such as git.example.org", _hostname),
    "uri": ("a URL such as https://git.example.org/", _uri),
    "email": ("an e-mail address", _email),
    "ipv4": ("an IPv4 address", _ipv4),
    "ipv6": ("an IPv6 address", _ipv6),
    "date": ("a date such as 2027-01-31", lambda value: _DATE.fullmatch(value) is not None),
}
"""A format's name to what it wants, and whether a string is that."""

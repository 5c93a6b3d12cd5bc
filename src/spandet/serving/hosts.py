"""Allowed values of the Host header, against DNS rebinding.

The domain of a hostile web page can resolve to this machine, so that its scripts in a visitor's
browser can read the responses of the service. The browser still sends the hostile name as Host.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from spandet.errors import UsageError

ANY = "*"

_HEADER = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]*)?")


class AllowedHosts:
    """The names allowed in a Host header; the port is ignored.

    IP addresses are always allowed: unlike a name, an address cannot be made to point elsewhere.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Create the set of allowed names.

        Args:
            names: Host names without ports; `*` allows every name.

        Raises:
            UsageError: A name is neither a host name nor `*`.
        """
        for name in names:
            if name != ANY and _host_name(name) != name.lower():
                raise UsageError(
                    f"--allow-host {name}: expected a host name without port, or {ANY}"
                )
        self._names = frozenset(map(str.lower, names))

    @classmethod
    def when_listening_on(cls, host: str, more: Sequence[str] = ()) -> AllowedHosts:
        """Allowed names of a service that listens on `host`.

        A service that listens on every network (0.0.0.0, ::) is reached by names that it cannot
        know, such as those of containers: every name is allowed, unless some are given.

        Args:
            host: Address or name that the service listens on.
            more: Names that the user allows.
        """
        if _is_wildcard(host) and not more:
            return cls([ANY])
        own = {name for name in (host, socket.gethostname()) if _host_name(name) == name.lower()}
        return cls(["localhost", *sorted(own), *more])

    @property
    def any(self) -> bool:
        """Whether every name is allowed."""
        return ANY in self._names

    def __contains__(self, header: str) -> bool:
        if self.any:
            return True
        name = _host_name(header)
        return name is not None and (
            name in self._names or name.endswith(".localhost") or _is_address(name)
        )


def _host_name(header: str) -> str | None:
    """The name or address in a Host header, in lower case; None if it is not well formed."""
    found = _HEADER.fullmatch(header)
    return (found["address"] or found["name"]).lower().removesuffix(".") if found else None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ip_address(host).is_unspecified

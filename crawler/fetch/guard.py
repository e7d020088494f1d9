"""The last word on what is dialled: a resolver that checks every answer and a socket factory that checks every address.

The client resolves no IP literals, so the resolver alone would let them pass; the factory sees each address just
before the connection is made, whatever led to it.
"""

import socket
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import AsyncResolver

from crawler.policy.addresses import AddressPolicy
from crawler.policy.scope import matches_name


class RefusedAddress(OSError):
    """The address may not be dialled. An OSError, so that the client hands it through (never a bare Exception)."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address} is {reason}")
        self.address = address
        self.reason = reason


class GuardedResolver(AbstractResolver):
    """Resolve names once, by override or DNS; one closed address refuses the whole answer."""

    def __init__(
        self, policy: AddressPolicy, hosts: Mapping[str, str] | None = None, nameservers: Iterable[str] = ()
    ) -> None:
        self._policy = policy
        # Exact names before patterns, longer patterns before shorter ones.
        self._hosts = sorted((hosts or {}).items(), key=lambda item: ("*" in item[0], -len(item[0])))
        servers = list(nameservers)
        self._options: dict[str, Any] = {"nameservers": servers} if servers else {}
        self._dns: AsyncResolver | None = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Give the addresses of a host; raises RefusedAddress, or OSError when there is none."""
        override = next((address for pattern, address in self._hosts if matches_name(pattern, host)), None)
        if override is not None:
            answers = [_literal(host, override, port)]
        else:
            if self._dns is None:
                self._dns = AsyncResolver(**self._options)
            answers = await self._dns.resolve(host, port, family)
        for answer in answers:
            reason = self._policy.refusal(answer["host"])
            if reason is not None:
                raise RefusedAddress(answer["host"], reason)
        return answers

    async def close(self) -> None:
        if self._dns is not None:
            await self._dns.close()


def _literal(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)


class GuardedSockets:
    """The connector's socket factory."""

    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy

    def __call__(self, address_info: Any) -> socket.socket:
        family, kind, protocol, _, address = address_info
        reason = self._policy.refusal(address[0])
        if reason is not None:
            raise RefusedAddress(address[0], reason)
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        return connection

"""A name server on loopback that answers what it is told, one list of addresses after the other."""

import asyncio
import ipaddress
import struct
from collections import Counter

_A, _AAAA = 1, 28
NXDOMAIN, SERVFAIL = 3, 2


class FakeDns(asyncio.DatagramProtocol):
    """Answers A queries from a script by name, the last answer for ever. Use as an asynchronous context manager."""

    def __init__(self, script: dict[str, list[list[str] | int]], *, silent: bool = False) -> None:
        self._script = script
        self._silent = silent
        self._transport: asyncio.DatagramTransport | None = None
        self.asked: Counter[str] = Counter()
        self.address = ""

    async def __aenter__(self) -> "FakeDns":
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        self.address = "127.0.0.1:{}".format(self._transport.get_extra_info("sockname")[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._transport is not None:
            self._transport.close()

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        if self._silent or self._transport is None:
            return
        labels, position = [], 12
        while data[position]:
            labels.append(data[position + 1 : position + 1 + data[position]].decode())
            position += data[position] + 1
        name = ".".join(labels).lower()
        kind = struct.unpack_from("!H", data, position + 1)[0]
        question = data[12 : position + 5]
        self._transport.sendto(self._answer(data[:2], question, name, kind), peer)

    def _answer(self, number: bytes, question: bytes, name: str, kind: int) -> bytes:
        answers = self._script.get(name, [NXDOMAIN])
        if kind == _A:
            turn = min(self.asked[name], len(answers) - 1)
            self.asked[name] += 1
        else:
            turn = min(max(self.asked[name] - 1, 0), len(answers) - 1)
        found = answers[turn]
        if isinstance(found, int):
            return number + struct.pack("!HHHHH", 0x8180 | found, 1, 0, 0, 0) + question
        records = [
            b"\xc0\x0c" + struct.pack("!HHIH", wanted, 1, 0, len(packed)) + packed
            for wanted, packed in map(_record, found)
            if wanted == kind
        ]
        return number + struct.pack("!HHHHH", 0x8180, 1, len(records), 0, 0) + question + b"".join(records)


def _record(address: str) -> tuple[int, bytes]:
    parsed = ipaddress.ip_address(address)
    return (_A if parsed.version == 4 else _AAAA), parsed.packed

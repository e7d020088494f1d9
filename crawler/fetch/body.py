"""Reading a response body within bounds: bytes counted as they are decoded, compressed or not."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aiohttp import ClientResponse

from crawler.fetch.faults import Fault, detail_of
from index.documents import Outcome

_SKIPPED = 65_536
_GZIP_MAGIC = b"\x1f\x8b"
# Is told each decoded piece of a body and says whether the rest is not wanted.
Enough = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body, its size as transferred, and whether more was there than wanted."""

    content: bytes
    wire_size: int
    truncated: bool = False


async def read_body(
    response: ClientResponse, content_encoding: str, *, max_size: int, truncate: bool, enough: Enough | None = None
) -> Body:
    """Stream the body, counting bytes as decoded; an incomplete one is a failure (RFC 9112 8) unless it is `enough`.

    Raises Fault when the body is too large or cannot be decoded; the client's own errors pass through.
    """
    decoder = _decoder(content_encoding)
    length = response.content_length
    if decoder is None and length is not None and length > max_size and not truncate:
        raise Fault(Outcome.TOO_LARGE, "too_large", f"{length} bytes announced, {max_size} wanted at most")
    chunks: list[bytes] = []
    size = wire_size = 0
    async for chunk in response.content.iter_any():
        wire_size += len(chunk)
        for piece in decoder.decode(chunk) if decoder else (chunk,):
            room = max_size - size
            if len(piece) > room:
                if not truncate:
                    raise Fault(Outcome.TOO_LARGE, "too_large", f"more than {max_size} bytes")
                chunks.append(piece[:room])
                return Body(b"".join(chunks), wire_size, truncated=True)
            chunks.append(piece)
            size += len(piece)
            if enough is not None and enough(piece):
                return Body(b"".join(chunks), wire_size)
    if decoder is not None:
        decoder.finish()
    return Body(b"".join(chunks), wire_size)


async def skip_body(response: ClientResponse) -> None:
    """Read past a body that nobody wants, if it is short: that is cheaper than a new connection."""
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > _SKIPPED:
            return


def _decoder(encoding: str) -> "Gunzip | None":
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return Gunzip()
    raise Fault(Outcome.MALFORMED, "content_encoding", "a content coding that was not asked for")


class Gunzip:
    """Decodes gzip a bounded piece at a time, several members if need be; its end and checksum must be there."""

    _PIECE = 65_536

    def __init__(self) -> None:
        self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._empty = True
        self._head = b""

    def decode(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded pieces of a chunk; raises Fault when it is no gzip."""
        self._empty = self._empty and not chunk
        self._head = (self._head + chunk[:2])[:2]
        try:
            while chunk:
                if self._member.eof:
                    self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
                yield self._member.decompress(chunk, self._PIECE)
                chunk = self._member.unconsumed_tail or self._member.unused_data
        except zlib.error as error:
            if not self._head.startswith(_GZIP_MAGIC[: len(self._head)]):
                raise Fault(
                    Outcome.MALFORMED, "content_encoding", "the body is not the gzip it is said to be"
                ) from None
            raise Fault(Outcome.UNREACHABLE, "incomplete", detail_of(error)) from None

    def finish(self) -> None:
        """Check that the last member ended; raises Fault when it did not."""
        if not self._member.eof and not self._empty:
            raise Fault(Outcome.UNREACHABLE, "incomplete", "the compressed body ends early")

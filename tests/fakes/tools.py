"""A real MCP server on loopback: that of the SDK, over Streamable HTTP, every request written down."""

import asyncio
import socket
from collections.abc import Iterable
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from tests.fakes.web import Seen

ENDPOINT = "/mcp"


class RealServer:
    """Serves tools that can be changed while it runs. Use as an asynchronous context manager."""

    def __init__(self, *names: str, host: str = "tools.example", as_events: bool = True) -> None:
        self.host = host
        self.seen: list[Seen] = []
        self._server = MCPServer("echo", version="1.2.0")
        self.serve(names)
        self._as_events = as_events
        # The protocol is named for asyncio to switch Nagle's delay off: head and body come apart.
        self._socket = socket.socket(proto=socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        # Who connects before the server runs is let in when it does.
        self._socket.listen()
        self.authority = f"{host}:{self._socket.getsockname()[1]}"
        self.url = f"http://{self.authority}{ENDPOINT}"

    def serve(self, names: Iterable[str]) -> None:
        """Add tools."""
        for name in names:
            self._server.add_tool(_nothing, name=name, description=f"Does {name}")

    def withdraw(self, name: str) -> None:
        """Take a tool away."""
        self._server.remove_tool(name)

    async def __aenter__(self) -> "RealServer":
        anywhere = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = self._server.streamable_http_app(
            streamable_http_path=ENDPOINT, json_response=not self._as_events, transport_security=anywhere
        )
        config = uvicorn.Config(self._logged(app), lifespan="on", log_config=None, ws="none")
        self._process = uvicorn.Server(config)
        self._task = asyncio.create_task(self._process.serve(sockets=[self._socket]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.should_exit = True
        await self._task

    def _logged(self, app: Any) -> Any:
        async def logged(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                headers = {name.decode().title(): value.decode() for name, value in scope["headers"]}
                self.seen.append(Seen(self.host, scope["method"], scope["path"], headers))
            await app(scope, receive, send)

        return logged


def _nothing() -> str:
    raise AssertionError("a probe calls no tool")

"""A real A2A agent on loopback: the routes and the card of the SDK, every request written down."""

import asyncio
import socket
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCard
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

from tests.fakes.web import Seen

RPC = "/a2a"


class _Executor(AgentExecutor):
    """Does nothing: a crawler asks no agent to."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise AssertionError("a crawler calls no agent")

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise AssertionError("a crawler calls no agent")


class RealAgent:
    """Serves a card that can be changed while it runs. Use as an asynchronous context manager."""

    def __init__(self, host: str = "agent.example", *, cache_control: str | None = None) -> None:
        self.host = host
        self.seen: list[Seen] = []
        self.card: dict[str, Any] = {}
        self._cache_control = cache_control
        # The protocol is named for asyncio to switch Nagle's delay off: head and body come apart.
        self._socket = socket.socket(proto=socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        # Who connects before the server runs is let in when it does.
        self._socket.listen()
        self.origin = f"http://{host}:{self._socket.getsockname()[1]}"

    def url(self, path: str) -> str:
        return self.origin + path

    async def __aenter__(self) -> "RealAgent":
        card = self._message()
        handler = DefaultRequestHandler(agent_executor=_Executor(), task_store=InMemoryTaskStore(), agent_card=card)
        routes = [
            *create_agent_card_routes(card, card_modifier=self._current, cache_control=self._cache_control),
            *create_jsonrpc_routes(handler, RPC),
        ]
        config = uvicorn.Config(self._logged(Starlette(routes=routes)), lifespan="off", log_config=None, ws="none")
        self._server = uvicorn.Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = True
        await self._task

    def _message(self) -> AgentCard:
        return ParseDict(self.card, AgentCard())

    async def _current(self, _: AgentCard) -> AgentCard:
        return self._message()

    def _logged(self, app: Any) -> Any:
        async def logged(scope: Any, receive: Any, send: Any) -> None:
            headers = {name.decode().title(): value.decode() for name, value in scope["headers"]}
            seen = Seen(self.host, scope["method"], scope["path"], headers)
            self.seen.append(seen)

            async def noted(message: Any) -> None:
                seen.status = message.get("status", seen.status)
                await send(message)

            await app(scope, receive, noted)

        return logged

    def requests(self, path: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.path == path]

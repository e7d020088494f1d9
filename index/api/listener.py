"""An application on an address of its own."""

from typing import Self

from aiohttp import web

from config.errors import OperatorError
from index.api.errors import SERVER, ApiRunner


class Listener:
    """Serves an application on an address that a setting names. Use as an asynchronous context manager."""

    def __init__(self, app: web.Application, setting: str, listen: str) -> None:
        app.on_response_prepare.append(_name_server)
        self._runner = ApiRunner(app, access_log=None, handle_signals=False)
        self._setting = setting
        self._listen = listen

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        host, _, port = self._listen.rpartition(":")
        site = web.TCPSite(self._runner, host.strip("[]"), int(port))
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise OperatorError(f"{self._setting} = {self._listen}: {error.strerror or error}") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def address(self) -> str:
        """The address that it listens on, with the port it was given."""
        host, port = self._runner.addresses[0][:2] if self._runner.addresses else ("", 0)
        return f"{host}:{port}"


async def _name_server(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = SERVER

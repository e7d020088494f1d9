"""An application on an address of its own."""

import socket
from typing import Self

from aiohttp import web

from config.errors import OperatorError
from index.api.errors import SERVER, ApiRunner


class Listener:
    """Serves an application on an address that a setting names. Use as an asynchronous context manager."""

    def __init__(self, app: web.Application, setting: str, listen: str, taken: socket.socket | None = None) -> None:
        app.on_response_prepare.append(_name_server)
        self._runner = ApiRunner(app, access_log=None, handle_signals=False)
        self._setting = setting
        self._listen = listen
        self._taken = taken

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        host, port = _parts(self._listen)
        site = web.TCPSite(self._runner, host, port) if self._taken is None else web.SockSite(self._runner, self._taken)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise _unusable(self._setting, self._listen, error) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def address(self) -> str:
        """The address that it listens on, with the port it was given."""
        host, port = self._runner.addresses[0][:2] if self._runner.addresses else ("", 0)
        return f"{host}:{port}"


def take_port(setting: str, listen: str) -> tuple[str, socket.socket | None]:
    """Where any port will do (port 0), take one, so that what is served can name it; raises OperatorError."""
    host, port = _parts(listen)
    if port:
        return listen, None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.create_server(address[:2], family=family)
    except OSError as error:
        raise _unusable(setting, listen, error) from None
    return f"{listen.rpartition(':')[0]}:{taken.getsockname()[1]}", taken


def _parts(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    return host.strip("[]"), int(port)


def _unusable(setting: str, listen: str, error: OSError) -> OperatorError:
    return OperatorError(f"{setting} = {listen}: {error.strerror or error}")


async def _name_server(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = SERVER

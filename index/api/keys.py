"""What the handlers find on the application."""

from collections.abc import Callable
from datetime import datetime

from aiohttp import web

from config.settings import Settings
from index.api.readings import Readings
from index.query import PageTokens
from index.store.database import Database

DATABASE = web.AppKey("database", Database)
SETTINGS = web.AppKey("settings", Settings)
TOKENS = web.AppKey("tokens", PageTokens)
NOW: web.AppKey[Callable[[], datetime]] = web.AppKey("now")
READINGS = web.AppKey("readings", Readings)

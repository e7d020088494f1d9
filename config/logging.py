"""Events on standard error: JSON lines for machines, colour for people."""

import logging
import sys
from typing import Any

import orjson
import structlog
from structlog.tracebacks import ExceptionDictTransformer

from config.settings import LoggingSettings

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_LONGEST_TEXT = 2000


def configure_logging(settings: LoggingSettings, *, quiet: bool = False) -> None:
    """Set up structlog, and the standard library's loggers to speak through it.

    `quiet` is for commands that print a result: they report what is wrong, and more only when debugging.
    """
    level = _LEVELS[settings.level]
    if quiet and level == logging.INFO:
        level = logging.WARNING
    console = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _bounded,
    ]
    structlog.configure(
        processors=[
            *shared,
            *([_console()] if console else [_tracebacks, structlog.processors.JSONRenderer(serializer=_json)]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    # Libraries report only what is wrong; their lines would otherwise repeat ours.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _console() if console else structlog.processors.JSONRenderer(serializer=_json),
            ],
            foreign_pre_chain=shared,
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)


# Where a fault happened, without the values of local variables: they hold settings and foreign text.
_tracebacks = structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False))


def _console() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)


def _json(value: Any, **_: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _bounded(_: Any, __: str, event: Any) -> Any:
    """Cut texts from outside and take control characters out of them: a log line is no place for surprises."""
    for name, value in event.items():
        if isinstance(value, str):
            text = value if len(value) <= _LONGEST_TEXT or name == "exception" else value[:_LONGEST_TEXT] + "…"
            event[name] = text if text.isprintable() else "".join(map(_visible, text))
    return event


def _visible(character: str) -> str:
    return character if character.isprintable() or character == "\n" else "\ufffd"

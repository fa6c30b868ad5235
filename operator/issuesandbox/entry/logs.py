"""How log lines look: JSON for machines, one readable line for people; never with a secret.

One line per action, with the same keys everywhere; what a caller passes as `extra` becomes a
key. All text of this process goes through one handler, which hides tokens, keys and addresses
with credentials: also from other packages, from warnings and from exceptions nobody caught.
Knows nothing of what is logged.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec

from issuesandbox.domain.redaction import MASK, Redactor

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_NO_EXTRAS = _STANDARD | {"at", "level", "logger", "message", "exception"}
_NOISY = {
    "kopf": logging.WARNING,
    # It warns that signals are ours: they are, on purpose.
    "kopf._core.reactor.running": logging.ERROR,
    "aiohttp.access": logging.WARNING,
}
_DEEPEST = 8
_SECRETS: set[str] = set()
_SECRET_FIELD = re.compile(
    r"(^|[_-])(token|secret|password|passwd|authorization|api[_-]?key|private[_-]?key)s?$", re.I
)

# The same, in a row of names.
_SECRET_FIELDS = re.compile(_SECRET_FIELD.pattern.replace("(^|", "(^| |").replace("$", r"\b"), re.I)

logger = logging.getLogger(__name__)


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        line: dict[str, Any] = {
            "at": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        # Before the text becomes JSON: a key of many lines looks different after.
        if not _is_plain(line, self._redactor):
            line = _hidden(line, self._redactor)
        return msgspec.json.encode(line).decode()


class ConsoleFormatter(logging.Formatter):
    """Time, message and the extras as `key=value`."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one readable line."""
        hidden = _hidden(_extras(record), self._redactor)
        extras = " ".join(f"{name}={value}" for name, value in hidden.items())
        line = f"{_time(record)[11:23]} {record.levelname:<7} {record.getMessage()} {extras}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return self._redactor.redact(line.rstrip())


class _Handler(logging.StreamHandler[Any]):
    """Writes to standard error; a record that cannot be formatted is told without its content."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Say where the bad record came from; the usual traceback would show its arguments."""
        sys.stderr.write(f"a log record of {record.name} line {record.lineno} is malformed\n")


def configure_logs(
    style: str,
    level: str,
    secrets: Iterable[str] = (),
    modules: Mapping[str, str] | None = None,
) -> None:
    """Send all text of this process to standard error in the given style, without secrets."""
    # What was a secret before may still be on its way somewhere.
    _SECRETS.update(secrets)
    redactor = Redactor(_SECRETS)
    logging.setLogRecordFactory(_hiding(redactor))
    handler = _Handler()
    handler.setFormatter(JsonFormatter(redactor) if style == "json" else ConsoleFormatter(redactor))
    root = logging.getLogger()
    for other in list(logging.root.manager.loggerDict.values()):
        if isinstance(other, logging.Logger):
            # A package that writes on its own would go around the one handler.
            other.handlers.clear()
            other.propagate = True
    root.handlers[:] = [handler]
    logging.captureWarnings(True)
    sys.excepthook = _uncaught
    threading.excepthook = _uncaught_in_thread
    sys.unraisablehook = _unraisable
    set_levels(level, modules)


def redacted(text: str) -> str:
    """Return a text that goes around the logs, without secrets, as they would show it."""
    return Redactor(_SECRETS).redact(text)


def _hiding(redactor: Redactor) -> Callable[..., logging.LogRecord]:
    """Return what makes log records: without secrets from the start.

    So not even a handler that a package adds later gets to see one.
    """
    plain = logging.Formatter()

    def make(*args: Any, **rest: Any) -> logging.LogRecord:
        record = logging.LogRecord(*args, **rest)
        try:
            text = redactor.redact(record.getMessage())
        except Exception:
            text = f"a log record of {record.name} line {record.lineno} is malformed"
        record.msg, record.args = text, None
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = redactor.redact(plain.formatException(record.exc_info))
        return record

    return make


def set_levels(level: str, modules: Mapping[str, str] | None = None) -> None:
    """Set the level of all loggers, and other levels for single modules; callable at any time."""
    root = logging.getLogger()
    root.setLevel(level)
    for other in logging.root.manager.loggerDict.values():
        if isinstance(other, logging.Logger):
            other.setLevel(logging.NOTSET)
    for name, quiet in _NOISY.items():
        logging.getLogger(name).setLevel(max(quiet, root.level))
    for name, own in (modules or {}).items():
        logging.getLogger(name).setLevel(own)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logger.critical("the process ends by an error", exc_info=(kind, error, trace))


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None:
        cause = (args.exc_type, args.exc_value, args.exc_traceback)
        logger.error("a thread ended by an error", exc_info=cause)


def _unraisable(args: sys.UnraisableHookArgs) -> None:
    if args.exc_value is not None:
        cause = (args.exc_type, args.exc_value, args.exc_traceback)
        logger.error("an error where none can be raised", exc_info=cause)


def _is_plain(line: Mapping[str, Any], redactor: Redactor) -> bool:
    """Tell whether there is nothing to hide: one look at all texts instead of one at each."""
    texts = [value for value in line.values() if type(value) is str]
    others = (value for value in line.values() if type(value) is not str)
    if not all(value is None or type(value) in (bool, int, float) for value in others):
        return False
    names = " ".join(line)
    return _SECRET_FIELDS.search(names) is None and redactor.keeps("\n".join((names, *texts)))


def _hidden(value: Any, redactor: Redactor, depth: int = 0) -> Any:
    """Return a value fit for JSON, with every text in it redacted."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {
            redactor.redact(str(name)): _hidden_field(str(name), each, redactor, depth)
            for name, each in value.items()
        }
    if depth < _DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return [_hidden(each, redactor, depth + 1) for each in value]
    return redactor.redact(str(value))


def _hidden_field(name: str, value: Any, redactor: Redactor, depth: int) -> Any:
    if value and _SECRET_FIELD.search(name):
        return MASK
    return _hidden(value, redactor, depth + 1)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {
        name: value
        for name, value in record.__dict__.items()
        if name not in _NO_EXTRAS and not name.startswith(("_", "k8s_"))
    }

"""How a process is named, and whether it still lives."""

import os
import secrets
import socket
from pathlib import Path


def worker_name() -> str:
    """Name this process so that another one on the same machine can tell whether it still lives."""
    return f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}:{secrets.token_hex(3)}"


def _started(pid: int) -> str:
    """Give the start time of a process as the kernel counts it: a number that was used again differs in it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "?"


def is_dead(worker: str) -> bool:
    """Tell whether a worker of this machine has ended; of other machines nothing is known."""
    host, _, rest = worker.partition(":")
    pid, _, rest = rest.partition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    return _started(int(pid)) != rest.partition(":")[0]

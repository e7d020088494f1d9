"""The installed command, run as an operator would run it: a process of its own, from a folder with a settings file."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

ARDVARK = str(Path(sys.executable).with_name("ardvark"))


async def command(url: str, *arguments: str, origins: Sequence[str] = ()) -> tuple[int, str]:
    """Run a command on a database, from the folder of the test; gives its exit status and what it printed."""
    network = '[network]\nallow_http = true\nallow_private = ["127.0.0.0/8"]\nhosts = { "*.example" = "127.0.0.1" }\n'
    listed = "".join(f'[[origins]]\norigin = "{origin}"\n' for origin in origins)
    text = f'{listed}[storage]\nurl = "{url}"\n{network}[politeness]\nmin_delay = "0s"\n'
    await asyncio.to_thread(Path("ardvark.toml").write_text, text)
    process = await asyncio.create_subprocess_exec(
        ARDVARK, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    status = process.returncode or 0
    return status, out.decode() if status == 0 else out.decode() + err.decode()

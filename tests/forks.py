"""A command `python` whose modules start at once: a process that has imported everything forks for them.

Nearly all the time of a small step goes into imports. Tests that run dozens of steps under Snakemake have
this command first on their PATH. Arguments, folder, environment, streams and exit code are as with Python.
"""

import json
import multiprocessing
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from pathlib import Path

# The first lines are for a shell, since a kernel's own line would end at a space in the interpreter's path.
COMMAND = """#!/bin/sh
'''exec' "{python}" -IS "$0" "$@"
'''
import json, os, socket, sys
if sys.argv[1:2] != ["-m"]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b" "], [0, 1, 2])
server.sendall(json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode())
server.shutdown(socket.SHUT_WR)
os._exit(int(server.recv(9) or 1))
"""


def write_command(path: Path, address: str) -> None:
    """`python -m module` asks the process at this address to run it; any other use is Python's own."""
    path.write_text(COMMAND.format(python=sys.executable, address=address))
    path.chmod(0o755)


def serve(address: str) -> None:
    """Run the modules that are asked for at this address, each in a fork, while the parent process lives."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    parent = multiprocessing.parent_process().sentinel
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{address}.new")
        door.listen(64)
        Path(f"{address}.new").rename(address)  # where it is found, it answers
        while parent not in select.select([door, parent], [], [])[0]:
            caller, _ = door.accept()
            if os.fork() == 0:
                door.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os._exit(_attend(caller))
            caller.close()


def _attend(caller: socket.socket) -> int:
    """Run a caller's module and tell the caller its exit code. A caller who is killed takes it along."""
    _, streams, _, _ = socket.recv_fds(caller, 1, 3)
    request = json.loads(b"".join(iter(lambda: caller.recv(1 << 16), b"")))
    process = os.fork()
    if process == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, max(*streams, caller.fileno()) + 1)
        os._exit(_run(*request))
    for stream in streams:
        os.close(stream)
    events = select.poll()
    events.register(os.pidfd_open(process), select.POLLIN)
    events.register(caller, 0)  # hung up
    if events.poll()[0][0] == caller.fileno():
        os.kill(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    caller.sendall(str(code if code >= 0 else 128 - code).encode())
    return 0


def _run(command: list[str], folder: str, environment: dict[str, str]) -> int:
    """Run `python -m module ...`; returns the exit code."""
    sys.executable, _, module, *_ = command  # from which the rules take their `python`
    sys.argv = command[2:]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    if not hasattr(sys.modules.get(module), "__path__"):
        sys.modules.pop(module, None)  # a module that is imported already, but not as __main__
    code: object = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code or 0

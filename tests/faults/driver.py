"""Commands in forks of one process, so that modules are imported once, each with a fault of its machine.

    with driver() as drive:
        [(code, said)] = drive([Run("index", arguments, fault="cpu", amount=0.4)])

=========  ==================================================================================================
fault      meaning of ``amount``
=========  ==================================================================================================
``""``     nothing happens
``room``   bytes that a file may have: the disk is full (RLIMIT_FSIZE; databases notice it as a full disk does)
``cpu``    seconds of processor time after which the process is killed, without a last word
``lock``   nothing; no folder can be written to that has no permission for it, for root neither
``clock``  seconds that the clock of the machine jumps at each look, forth and back
=========  ==================================================================================================

Runs of one ``group`` are rivals: they begin together.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.warm_process import SECONDS, start

KILLED = -27  # by SIGPROF, whose default is the end


@dataclass(frozen=True)
class Run:
    """A command with its fault; ``script`` is a module of ``scripts``, or ``experiment``."""

    script: str
    arguments: Sequence[str]
    fault: str = ""
    amount: float = 0
    group: int = -1


Drive = Callable[[Sequence[Run]], list[tuple[int, str]]]
_DRIVER = """
import contextlib, ctypes, importlib, io, itertools, json, os, resource, signal, socket, sys, time
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import mathamr.stages.retrieval.indexing, mathamr.stages.learning.graph_model, scripts.index, experiments.run
asked = socket.create_connection(("127.0.0.1", {port})).makefile("rw")

def no_privileges():
    # without CAP_DAC_OVERRIDE (1) root, too, is kept out by permissions; version 3 of capset takes two words each
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.capget(header, data)
    data[0] &= ~0b110
    assert libc.capset(header, data) == 0

def jumping(seconds):
    now, jumps = time.time, itertools.cycle((seconds, -seconds, 0))
    time.time = lambda: now() + next(jumps)
    time.time_ns = lambda: int(time.time() * 1e9)

def child(run, report):
    if run["fault"] == "room":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(run["amount"]), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    elif run["fault"] == "cpu":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, run["amount"])
    elif run["fault"] == "lock":
        no_privileges()
    elif run["fault"] == "clock":
        jumping(run["amount"])
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            if run["script"] == "experiment":
                code = experiments.run.start(run["arguments"])
            else:
                code = importlib.import_module("scripts." + run["script"]).main(run["arguments"])
        except BaseException as error:
            print(f"Traceback: {error!r}", file=said)
            code = 99
    signal.setitimer(signal.ITIMER_PROF, 0)
    os.write(report, said.getvalue().encode()[-9000:])
    os._exit(code)

def begin(run):
    read, write = os.pipe()
    process = os.fork()
    if not process:
        os.close(read)
        child(run, write)
    os.close(write)
    return process, read

def end(process, read):
    with os.fdopen(read) as said:
        text = said.read()
    return [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), text]

def together(run):
    number, own = run
    return own["group"] if own["group"] >= 0 else -1 - number

for line in asked:
    ended = []
    for _, rivals in itertools.groupby(enumerate(json.loads(line)), together):
        ended += [end(*begun) for begun in [begin(run) for _, run in rivals]]
    print(json.dumps(ended), file=asked, flush=True)
"""


@contextmanager
def driver() -> Iterator[Drive]:
    """Yield a function that returns the exit code of each run, and what it said on stderr."""
    with socket.create_server(("127.0.0.1", 0)) as server, TemporaryDirectory() as folder:
        server.settimeout(SECONDS)
        process = start(_DRIVER.replace("{port}", str(server.getsockname()[1])), Path(folder))
        connection, _ = server.accept()
        with connection, connection.makefile("rw") as answers:

            def drive(runs: Sequence[Run]) -> list[tuple[int, str]]:
                print(json.dumps([asdict(run) for run in runs]), file=answers, flush=True)
                return [(code, said) for code, said in json.loads(answers.readline())]

            yield drive
        assert process.ended().returncode == 0

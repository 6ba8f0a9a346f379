"""Runs the command with a limit of time and memory, and says what came of it."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

# Seconds of processor time after which a command is interrupted, and in which it must end then: one that hangs does not.
CPU_SECONDS, ENDING_SECONDS = 20, 10
# Seconds of the clock between looks at a command, and that it may take in all.
LOOK_SECONDS, WALL_SECONDS = 1, 300
# Bytes of address space.
MEMORY = 3 << 30

# Work that fails for a reason of the workload, which exits with 1.
FAILS_RIGHTLY = (
    # A job that reads zones of which none has data (docs/workloads.md).
    "none of its zones holds data",
)


class Done:
    """A command that ended: status, or the signal that ended it, and what it printed."""

    def __init__(self, argv, status, out, err, interrupted=False):
        self.argv, self.status, self.out, self.err, self.interrupted = argv, status, out, err, interrupted

    @property
    def error(self):
        """The sentences of the error, without notes and warnings before them."""
        lines = self.err.splitlines()
        first = next((number for number, line in enumerate(lines) if line.startswith("error: ")), 0)
        return "\n".join(lines[first:])

    def result(self):
        """The results that it printed as JSON."""
        return json.loads(self.out)


class Limits:
    """What a command may take."""

    def __init__(self, cpu=CPU_SECONDS, wall=WALL_SECONDS, memory=MEMORY):
        self.cpu, self.wall, self.memory = cpu, wall, memory

    def run(self, ssdlab, argv, folder, **environment):
        """Runs it in a folder, in a group of its own, which ends with it; interrupts it when it has taken its time."""
        limited = f'ulimit -c 0; ulimit -t {self.cpu + ENDING_SECONDS}; ulimit -v {self.memory >> 10}; exec "$0" "$@"'
        process = subprocess.Popen(
            ["sh", "-c", limited, ssdlab, *argv], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
            env=dict(os.environ, SSDLAB_CACHE=str(folder / "cache"), RUST_BACKTRACE="0", **environment),
        )
        until, interrupted = time.monotonic() + self.wall, False
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=LOOK_SECONDS)
                    return Done(argv, process.returncode, out, err, interrupted)
                except subprocess.TimeoutExpired:
                    if time.monotonic() > until:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.communicate()
                        return Done(argv, -signal.SIGKILL, "", "", interrupted)
                    if not interrupted and processor_seconds(process.pid) > self.cpu:
                        interrupted = True
                        process.send_signal(signal.SIGINT)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def processor_seconds(pid):
    """What a process has taken of the processor so far; nothing of one that has ended."""
    try:
        words = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Finding:
    """What must not happen. Two findings of one signature are taken for the same."""

    def __init__(self, step, kind, message, done=None):
        self.step, self.kind, self.message, self.done = step, kind, message, done
        self.signature = f"{step}: {kind}: {re.sub(r'[0-9][0-9.,:]*', 'N', message)[:160]}"


class Refused(Exception):
    """The command refused its input, as it may; the text is its error."""


def judge(step, done):
    """The finding that an ended command is, or None; raises Refused."""
    if "this is a bug in ssdlab" in done.err:
        sentence = next(line for line in done.err.splitlines() if "this is a bug in ssdlab" in line)
        return Finding(step, "panic", sentence.split("not in your input: ")[-1], done)
    if done.status in (0, 128):
        return None
    if done.status < 0 or done.status > 128:
        name = signal.Signals(-done.status if done.status < 0 else done.status - 128).name
        kind = "hang" if name in ("SIGXCPU", "SIGKILL") else "crash"
        return Finding(step, kind, f"ended by {name}; {done.err.strip()[-200:]}", done)
    if done.status == 2:
        raise Refused(done.error)
    broken = [line for line in done.out.splitlines() if line.startswith("INVARIANT BROKEN")]
    if broken:
        return Finding(step, "invariant", broken[0].removeprefix("INVARIANT BROKEN").strip().split(": ", 1)[-1], done)
    try:
        failed = done.result().get("failed")
        if failed:
            return Finding(step, "torture", failed["message"], done)
        checks = [check for device in done.result()["devices"] for check in device["checks"] if not check["passed"]]
        if checks:
            return Finding(step, "invariant", f"{checks[0]['name']}: {checks[0]['detail']}", done)
    except (ValueError, KeyError, TypeError):
        pass
    found = re.search(r"\nFAILED: seed .*\n  (.*)", done.out)
    if found:
        return Finding(step, "torture", found[1], done)
    if any(sentence in done.err for sentence in FAILS_RIGHTLY):
        return None
    if done.interrupted and "interrupted: " in done.err:
        # It was at work, and ended when it was told to: slow, and no hang.
        return None
    return Finding(step, "status", f"{done.status}: {done.error.strip()[:300]}", done)


def unlike(one, other):
    """The keys in which two results differ, apart from what the clock and the command line say."""
    def walk(a, b, name):
        if isinstance(a, dict) and isinstance(b, dict):
            for key in sorted(a.keys() | b.keys()):
                if not key.startswith("wall_") and (name or key != "command"):
                    yield from walk(a.get(key), b.get(key), f"{name}.{key}" if name else key)
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for index, pair in enumerate(zip(a, b)):
                yield from walk(*pair, f"{name}[{index}]")
        elif a != b:
            yield f"{name}: {json.dumps(a)[:60]} and {json.dumps(b)[:60]}"
    return list(walk(one, other, ""))

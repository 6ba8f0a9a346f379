#!/usr/bin/env python3
"""Serves drives to real programs: fio, NBD tools, file systems, databases, a guest; and cuts their power.

    tests/live/run.py SSDLAB [--release SSDLAB] [--seeded SERVER] [--seed N] [--seconds N] [--tries N] [--list] [NAME ...]

Runs the tests whose name contains one of the NAMEs, or all. A test that this machine does not allow is skipped with
the reason; with SSDLAB_REQUIRE_LIVE=1 that is a failure. With --seconds the tests that go round and round share that
time instead of a few rounds. With --tries each kind of command is answered and the server killed so many times. Python
3.11, no packages.
"""

import argparse
import importlib
import os
import pathlib
import signal
import sys
import time
import traceback

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from harness import Bench, Failed, Skipped  # noqa: E402

# Longest that one test may take, in seconds, and what --tries adds for each.
LIMIT = 300
SECONDS_A_TRY = 20

# The cheap and general ones first.
TOPICS = ("fio", "tools", "refusals", "promises", "kill", "stacks", "segments", "replay", "full_disk", "filesystems", "figure17", "databases", "caches", "guest", "recipes")


def tests():
    """All tests, as (name, function)."""
    topics = sorted(
        (path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")),
        key=lambda topic: (TOPICS.index(topic) if topic in TOPICS else len(TOPICS), topic),
    )
    for topic in topics:
        module = importlib.import_module(f"test_{topic}")
        for name, function in vars(module).items():
            if name.startswith("test_") and callable(function):
                yield f"{topic}/{name.removeprefix('test_')}", function


def too_long(_signal, _frame):
    raise Failed("took longer than it may")


def run(name, function, arguments, seconds):
    """Runs one test and says what came of it: `passed`, `failed` or `skipped`."""
    bench = Bench(arguments.ssdlab, arguments.seed, seconds, arguments.tries, arguments.seeded)
    bench.release = arguments.release
    limit = LIMIT + int(seconds or 0) + (arguments.tries or 0) * SECONDS_A_TRY
    began = time.monotonic()
    outcome, note, trace = "passed", "", ""
    signal.alarm(limit)
    try:
        try:
            note = function(bench) or ""
        finally:
            signal.alarm(0)
            bench.close()
    except Skipped as reason:
        outcome, note = "skipped", str(reason)
    except Failed as reason:
        outcome, note = "failed", str(reason)
        frames = [frame for frame in traceback.extract_tb(reason.__traceback__) if "test_" in frame.filename]
        trace = "".join(f"    at {pathlib.Path(frame.filename).name}:{frame.lineno}\n" for frame in frames)
    except Exception as error:
        outcome, note = "failed", f"{type(error).__name__}: {error}"
        trace = "    " + traceback.format_exc().replace("\n", "\n    ") + "\n"
    took = time.monotonic() - began
    if outcome == "skipped":
        print(f"live {name}: SKIPPED: {note}")
    else:
        said = f"{note}; " if note else ""
        print(f"live {name}: {'ok' if outcome == 'passed' else 'FAILED'}, {said}{took:.1f} s\n{trace}", end="")
    sys.stdout.flush()
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ssdlab", type=pathlib.Path)
    parser.add_argument("--release", type=pathlib.Path, help="a release-built command, for tests that measure speed")
    parser.add_argument("--seed", default="1", help="of everything random; the same seed sends the same commands")
    parser.add_argument("--seconds", type=float, help="shared by the tests that go round and round")
    parser.add_argument("--seeded", type=pathlib.Path, help="the server with seeded bugs, for the test that they are found")
    parser.add_argument("--tries", type=int, help="of the tests that kill the server on an answer, for each kind of command")
    parser.add_argument("--list", action="store_true", help="only list the tests")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    chosen = [(name, function) for name, function in tests()
              if not arguments.names or any(wanted in name for wanted in arguments.names)]
    if arguments.list:
        for name, function in chosen:
            print(f"{name:32} {(function.__doc__ or '').splitlines()[0]}")
        return 0
    signal.signal(signal.SIGALRM, too_long)
    # A terminated run still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    share = arguments.seconds / len(chosen) if arguments.seconds and chosen else None
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name, function in chosen:
        count[run(name, function, arguments, share)] += 1
    print(f"live: {count['passed']} passed; {count['failed']} failed; {count['skipped']} skipped")
    if os.environ.get("SSDLAB_REQUIRE_LIVE") == "1" and count["skipped"]:
        return 1
    return 1 if count["failed"] or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())

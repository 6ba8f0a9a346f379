"""`--background`: the command returns when the drive is ready, the server stays, and what a kill left is no obstacle."""

import os
import pathlib
import random
import signal
import time

import nbd
from attach import need_attach
from harness import DEVICES, check, wait_for
from oracle import SECTOR, pattern


def command(bench, *more, device="tiny", image="image"):
    """The command line of a server in the background."""
    return [bench.ssdlab, "serve", "-d", DEVICES / f"{device}.toml", "--image", bench.path(image), "--nbd",
            f"unix:{bench.path(image)}.sock", "--time-scale", "none", "--background", *more]


def started(bench, words, **options):
    """Runs such a command, which must succeed: the server's process, and what was said."""
    done = bench.attempt(*words, **options)
    check(done.returncode == 0, f"ended with {done.returncode}: {done.stderr}")
    check(done.stdout.strip().isdigit(), f"no process in {done.stdout!r}")
    process = int(done.stdout)
    bench.later(kill, process)
    return process, done.stderr


def is_alive(process):
    """Whether there is such a process. A zombie that init has to fetch has ended, once its threads have: they hold its sockets."""
    try:
        state, parent = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
        threads = len(os.listdir(f"/proc/{process}/task"))
    except OSError:
        return False
    return (state, parent) != ("Z", "1") or threads > 1


def kill(process, how=signal.SIGKILL):
    """Ends a process, and waits until nothing of it is left."""
    if is_alive(process):
        os.kill(process, how)
        wait_for(lambda: not is_alive(process), f"process {process} to end, and to be no zombie")


def test_serves_and_leaves_nothing_open(bench):
    """The server is ready on return, holds nothing of its starter's, and is found again after kill -9 with what was flushed."""
    rng = random.Random(f"{bench.seed} background")
    version = 0
    for round_number in range(4):
        ours, theirs = os.pipe()
        process, said = started(bench, command(bench), pass_fds=(theirs,))
        os.close(theirs)
        # Nobody else has the writing end: a server that inherited it would keep readers waiting.
        os.set_blocking(ours, False)
        check(os.read(ours, 1) == b"", "the server holds a pipe that it was not given")
        os.close(ours)
        check(os.getsid(process) == process, "the server is in the session of the command")
        check(os.readlink(f"/proc/{process}/fd/0") == "/dev/null", "standard input is not /dev/null")
        log = bench.path("image.log")
        check(all(os.readlink(f"/proc/{process}/fd/{one}") == str(log) for one in (1, 2)), "its words go elsewhere")
        check(log.stat().st_mode & 0o777 == 0o600, "others may read the log")
        recovered = "recovering the drive from its image" in said and "recovered from" in said
        check(recovered == (round_number > 0), f"round {round_number} says {said}")
        check(f"kill {process}" in said and str(log) in said, f"how to stop it is not said: {said}")
        client = nbd.Client(bench.path("image.sock"))
        if version:
            check(client.read(first * SECTOR, 8 * SECTOR) == b"".join(pattern(first + one, version) for one in range(8)),
                  "what was flushed is not there")
        first, version = rng.randrange(1000), version + 1
        client.write(first * SECTOR, b"".join(pattern(first + one, version) for one in range(8)))
        client.flush()
        client.close()
        time.sleep(rng.random() * 0.05)
        kill(process, signal.SIGKILL if round_number < 3 else signal.SIGTERM)
    check("served " in log.read_text(), f"the server did not end in order: {log.read_text()}")
    return f"{round_number + 1} servers"


def test_fails_with_the_servers_error(bench):
    """What cannot be served ends the command with the server's status and sentence, and leaves neither image nor log."""
    done = bench.attempt(*command(bench, "--set", "gc.victim=nobody"))
    check(done.returncode == 2 and "gc.victim" in done.stderr and not done.stdout, f"{done.returncode}: {done.stderr}")
    check(not bench.path("image").exists() and not bench.path("image.log").exists(), "something is left")
    process, _ = started(bench, command(bench))
    done = bench.attempt(*command(bench, "--log", bench.path("second.log")))
    check(done.returncode == 1 and "another server is listening" in done.stderr, f"{done.returncode}: {done.stderr}")
    check(not bench.path("second.log").exists(), "a log is left")
    nbd.Client(bench.path("image.sock")).close()
    kill(process, signal.SIGTERM)


def test_a_refused_server_leaves_the_log_of_the_first(bench):
    """A second server on an image says on its own standard error that it is refused; the log is the first one's."""
    process, first = started(bench, command(bench))
    log = bench.path("image.log")
    before = log.read_text()
    check(before and first.startswith(before), f"the log of the first has {before!r}, and it said {first!r}")
    words = [*command(bench), "--control", bench.path("second.ctl")]
    words[words.index("--nbd") + 1] = f"unix:{bench.path('second.sock')}"
    for more in ([], ["--log", log], ["--log", bench.path("second.log")]):
        done = bench.attempt(*words, *more)
        check(done.returncode == 2 and not done.stdout, f"{done.returncode}: {done.stdout}{done.stderr}")
        check("the image is in use by another process" in done.stderr, f"it is not said: {done.stderr}")
        check("control: " not in done.stderr, f"words of the first server: {done.stderr}")
        check(log.read_text() == before, f"the log of the first server: {log.read_text()}")
    check(not bench.path("second.log").exists(), "a log is left")
    nbd.Client(bench.path("image.sock")).close()
    kill(process, signal.SIGTERM)
    check("served " in log.read_text().removeprefix(before), f"the first server's end is not in the log: {log.read_text()}")


def test_an_occupied_address_makes_no_image(bench):
    """A socket or port on which another server listens is refused before an image is made, in the foreground too."""
    server = bench.serve("tiny")
    port = 10_000 + random.Random(f"{bench.seed} port").randrange(20_000)
    words = [bench.ssdlab, "serve", "-d", DEVICES / "tiny.toml", "--image", bench.path("other"), "--nbd"]
    process, _ = started(bench, [*words[:-2], bench.path("third"), "--nbd", f"tcp:{port}", "--background"])
    for address in (f"unix:{server.socket}", f"tcp:{port}"):
        done = bench.attempt(*words, address)
        check(done.returncode == 1 and "another server is listening" in done.stderr, f"{done.returncode}: {done.stderr}")
        check(not bench.path("other").exists(), f"{address}: an image was made")
    kill(process, signal.SIGTERM)
    server.stop()


def test_sigterm_while_it_recovers(bench):
    """The server says that it recovers before it does, and SIGTERM then ends it in order, with the drive flushed."""
    rng = random.Random(f"{bench.seed} recovery")
    server = bench.serve("medium")
    client = nbd.Client(server.socket)
    for first in range(0, 20_000, 256):
        client.write(first * SECTOR, bytes(256 * SECTOR))
    client.flush()
    client.close()
    early = 0
    for _ in range(8):
        server.kill()
        server.process = bench.start(*server.command(), log=bench.path("recovery"))
        log = server.process.log
        wait_for(lambda log=log: "recovering the drive from its image" in log.read_text(), "the recovery to begin")
        time.sleep(rng.random() * 0.02)
        server.process.terminate()
        status = server.process.wait(timeout=60)
        said = log.read_text()
        check(status == 0 and "stopping: " in said and "served " in said, f"ended with {status}: {said}")
        early += "NBD: " not in said
        log.unlink()
        # The next one recovers what this one left.
        server.start()
    server.stop()
    return f"{early} of 8 before it listened"


def test_mount(bench):
    """A mount in the background is there on return, also over what a killed one left, and --down ends it."""
    need_attach("ext4")
    mountpoint = bench.path("mnt")
    mountpoint.mkdir()
    bench.later(bench.attempt, bench.ssdlab, "mount", "--down", mountpoint)
    words = [bench.ssdlab, "mount", "-d", DEVICES / "medium.toml", "--image", bench.path("image"), "--time-scale", "none",
             "--fs", "ext4", mountpoint, "--background"]
    rng = random.Random(f"{bench.seed} mount")
    text = str(rng.random())
    process, said = started(bench, words)
    check(mountpoint.is_mount() and "mounted: " in said, f"not mounted: {said}")
    with open(mountpoint / "file", "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    time.sleep(rng.random() * 0.1)
    kill(process)
    process, said = started(bench, words)
    check((mountpoint / "file").read_text() == text, "what was synced is not there")
    check("--down" in said, f"how to take it down is not said: {said}")
    bench.run(bench.ssdlab, "mount", "--down", mountpoint)
    check(not mountpoint.is_mount() and not is_alive(process), "the mount or its server is left")


def test_logs_and_recordings_replace_nothing(bench):
    """A log that is no plain file, that the command reads, or that is in the image is refused at once; so is a recording there."""
    process, _ = started(bench, command(bench))
    kill(process, signal.SIGTERM)
    image = pathlib.Path(bench.path("image"))
    before = {path.name: path.read_bytes() for path in image.iterdir() if path.is_file()}
    device = DEVICES / "tiny.toml"
    for option, path, expected in [
        ("--log", "/dev/full", "found no plain file"),
        ("--log", image / "pages", "it is in the image"),
        ("--log", device, "which is read"),
        ("--record", image / "control.sock", "it is in the image"),
        ("--record", pathlib.Path(bench.path("new")) / "pages", "it is in the image"),
    ]:
        words = command(bench, option, path, image="new" if "new" in str(path) else "image")
        done = bench.attempt(*words)
        check(done.returncode == 2, f"{option} {path} ended with {done.returncode}: {done.stderr}")
        check(expected in done.stderr, f"{option} {path}: {expected!r} is not in {done.stderr!r}")
    after = {path.name: path.read_bytes() for path in image.iterdir() if path.is_file()}
    check(before == after, f"files of the image changed: {sorted(before)} to {sorted(after)}")
    check(not pathlib.Path(bench.path("new")).exists(), "a refused start made an image")

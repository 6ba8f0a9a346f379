"""A server that is killed is a drive that lost its power: what it promised is there when it comes back."""

import random
import shutil
import threading

import nbd
from harness import Failed, check
from oracle import SECTOR, Oracle, Writer, pattern


def cuts(bench, count, seconds, pace, connections, buffer, device="tiny", options=()):
    """Kills a server `count` times while it is written to, and looks at every sector each time."""
    rng = random.Random(f"{bench.seed} {pace} {buffer}")
    server = bench.serve(device, pace=pace, options=["--set", f"buffer.policy={buffer}", *options])
    client = nbd.Client(server.socket)
    oracle = Oracle(client.size // SECTOR)
    # Full from the start, so that garbage is collected all the time.
    for first in range(0, oracle.sectors, 256):
        version = oracle.sent(first, 256, False)
        client.write(first * SECTOR, b"".join(pattern(sector, version) for sector in range(first, first + 256)))
        oracle.done(first, 256, version, False)
    covered = oracle.flush_sent()
    client.flush()
    oracle.flush_done(covered)
    client.close()
    total = {}
    done = 0
    for cut in bench.rounds(count):
        clients = [nbd.Client(server.socket) for _ in range(connections)]
        writer = Writer(oracle, clients, rng.random(), depth=rng.choice((1, 4, 16, 32)), fua=rng.choice((0, 0.1, 0.5)),
                        flush=rng.choice((0.005, 0.05, 0.3)), trim=rng.choice((0, 0.05, 0.3)))
        power = threading.Timer(rng.uniform(0.02, seconds), server.kill)
        power.start()
        try:
            writer.run(lambda: True)
        except nbd.Gone:
            pass
        power.join()
        check(not writer.refused, f"cut {cut}: commands were refused: {writer.refused[:3]}")
        oracle.cut()
        server.process.wait(timeout=30)
        server.start()
        client = nbd.Client(server.socket)
        oracle.look_all(client, cut=True)
        if cut % 4 == 0:
            # Once more: recovery has not left anything that the next reader sees otherwise.
            oracle.look_all(client, cut=False)
        client.close()
        for kind, number in writer.counts.items():
            total[kind] = total.get(kind, 0) + number
        for one in clients:
            one.socket.close()
        done += 1
    erases = server.figures()["erases"]["mean"]
    check(erases > 0, "no garbage was collected")
    server.stop()
    commands = ", ".join(f"{number} {kind}" for kind, number in total.items())
    return f"{done} cuts; {commands}; {erases:.1f} erases a block"


def test_kill_at_once(bench):
    """Killed at any moment: what a flush or FUA covered is there, and every sector is old or new, never something else."""
    return cuts(bench, 12, 0.4, "none", connections=2, buffer="lru")


def test_kill_in_model_time(bench):
    """The same in the model's time, with programs and erases under way."""
    return cuts(bench, 8, 0.5, "model", connections=3, buffer="fifo")


def test_kill_without_buffer(bench):
    """The same without a write buffer."""
    return cuts(bench, 4, 0.4, "model*0.1", connections=1, buffer="none")


def test_kill_with_driver(bench):
    """The same with SHRD's driver between the socket and a drive with a log."""
    options = [*bench.with_driver(), "--set", "ftl.map_cache=16k"]
    return cuts(bench, 6, 0.5, "model*0.1", connections=2, buffer="fifo", device="small", options=options)


def test_kill_with_append(bench):
    """The same with a host that appends between the socket and a drive with append-only segments."""
    return cuts(bench, 6, 0.5, "model*0.1", connections=2, buffer="none", device="segments", options=bench.with_append())


def test_kill_with_append_on_zones(bench):
    """The same above a drive with zones, as few of them active as that host needs."""
    return cuts(bench, 6, 0.5, "model*0.1", connections=2, buffer="none", device="zones", options=bench.with_append())


def test_the_check_can_fail(bench):
    """A drive that lost what a flush covered is found: its image is put back to what it was before."""
    server = bench.serve("tiny")
    client = nbd.Client(server.socket)
    oracle = Oracle(client.size // SECTOR)
    stop = iter([True] * 300)
    Writer(oracle, [client], "first").run(lambda: next(stop, False))
    server.kill()
    shutil.copytree(server.image, bench.path("before"))
    server.start()
    client = nbd.Client(server.socket)
    oracle.cut()
    oracle.look_all(client, cut=True)
    version = oracle.sent(40, 8, False)
    client.write(40 * SECTOR, b"".join(pattern(sector, version) for sector in range(40, 48)))
    oracle.done(40, 8, version, False)
    covered = oracle.flush_sent()
    client.flush()
    oracle.flush_done(covered)
    server.kill()
    shutil.rmtree(server.image)
    bench.path("before").rename(server.image)
    server.start()
    client = nbd.Client(server.socket)
    try:
        oracle.look_all(client, cut=True)
    except Failed as failed:
        check("sector 40 " in str(failed), f"another sector is named: {failed}")
        return
    raise Failed("the lost write was not found")

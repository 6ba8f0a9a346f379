"""fio's own checks over its nbd engine."""

import json

import nbd
from harness import MIB, Failed, check, need


def fio(bench, server, *options, timeout=120, connections=1):
    """A fio run; returns its jobs' results. Jobs of several connections have a part of the drive each."""
    command = [
        "fio", "--name=job", "--ioengine=nbd", f"--uri={server.uri}", "--output-format=json", "--randseed=7",
        f"--numjobs={connections}", "--group_reporting=0", "--thread", *options,
    ]
    out = bench.run(*command, timeout=timeout)
    # fio says things before its JSON.
    jobs = json.loads(out[out.index("{\n"):])["jobs"]
    check(len(jobs) == connections, f"{len(jobs)} jobs of {connections} have a result")
    for job in jobs:
        check(job["error"] == 0, f"fio's job ended with error {job['error']}")
    return jobs


def verified(bench, server, *options, connections=1):
    """Writes with a checksum in every block and reads it all back; returns the requests that fio counted."""
    jobs = fio(bench, server, "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", *options, connections=connections)
    reads, writes = (sum(job[kind]["total_ios"] for job in jobs) for kind in ("read", "write"))
    check(writes > 0 and reads >= writes, f"{writes} writes and only {reads} reads that verify them")
    return reads, writes


def test_verify_4k(bench):
    """4 KB random writes with crc32c, depth 1 and 32, each block read back."""
    need(fio="fio")
    server = bench.serve()
    for depth in (1, 32):
        verified(bench, server, "--rw=randwrite", "--bs=4k", f"--iodepth={depth}", "--size=12m")
    figures = server.figures()
    writes = figures["commands"]["write"]
    check(writes == 2 * 3072, f"the drive counts {writes} writes, fio sent 6144")
    server.stop()


def test_verify_any_size(bench):
    """512 bytes to 128 KB, at any sector, with flushes in between."""
    need(fio="fio")
    server = bench.serve()
    reads, writes = verified(
        bench, server, "--rw=randwrite", "--bsrange=512-128k", "--iodepth=16", "--serialize_overlap=1", "--size=40m",
        "--fsync=64",
    )
    figures = server.figures()
    check(figures["commands"]["flush"] >= writes // 64, f"{figures['commands']['flush']} flushes for {writes} writes")
    server.stop()
    return f"{writes} writes, {reads} reads"


def test_verify_with_driver(bench):
    """512 bytes to 128 KB with SHRD's driver between the socket and a drive with a log."""
    need(fio="fio")
    server = bench.serve(options=bench.with_driver())
    reads, writes = verified(
        bench, server, "--rw=randwrite", "--bsrange=512-128k", "--iodepth=16", "--serialize_overlap=1", "--size=40m",
        "--fsync=64",
    )
    verified(bench, server, "--rw=randwrite", "--bs=4k", "--iodepth=32", "--size=12m")
    server.stop()
    return f"{writes} writes, {reads} reads"


def test_verify_four_connections(bench):
    """Four connections to one export, each with its own part of the drive."""
    need(fio="fio")
    server = bench.serve()
    reads, writes = verified(
        bench, server, "--rw=randrw", "--rwmixread=30", "--bs=4k", "--iodepth=8", "--size=8m", "--offset_increment=8m",
        connections=4,
    )
    server.stop()
    return f"{writes} writes, {reads} reads"


def test_verify_through_a_host_room(bench):
    """With an I/O scheduler between the socket and the drive, which merges what is side by side; again after a kill."""
    need(fio="fio")
    host = bench.path("host.toml")
    host.write_text('[[layer]]\nkind = "scheduler"\ndepth = 2\nmerge_size = "64k"\n')
    server = bench.serve(options=("--host", host))
    sequential = ("--rw=write", "--bs=4k", "--iodepth=32", "--size=16m")
    _, writes = verified(bench, server, *sequential)
    commands = server.figures()["commands"]["write"]
    # How many find a neighbour waiting depends on how fast the client is.
    check(commands < writes, f"{writes} writes side by side, waiting for 2 places, became {commands} commands")
    verified(bench, server, "--rw=randwrite", "--bsrange=512-64k", "--iodepth=16", "--serialize_overlap=1", "--size=16m")
    fio(bench, server, *sequential, "--verify=crc32c", "--do_verify=0", "--end_fsync=1")
    server.kill()
    server.start()
    fio(bench, server, *sequential, "--verify=crc32c", "--verify_fatal=1", "--verify_only")
    server.stop()
    return f"{writes} writes as {commands} commands"


def test_verify_trims(bench):
    """A trim before each write, then trims of everything, which reads as zeroes."""
    need(fio="fio")
    server = bench.serve()
    _, writes = verified(bench, server, "--rw=randtrimwrite", "--bs=4k", "--iodepth=8", "--size=16m")
    fio(bench, server, "--rw=randtrim", "--bs=64k", "--iodepth=4", "--size=16m")
    trims = server.figures()["commands"]["trim"]
    check(trims == writes + 256, f"the drive counts {trims} trims, fio sent {writes + 256}")
    client = nbd.Client(server.socket)
    check(not any(client.read(0, 16 * MIB)), "what was trimmed does not read as zeroes")
    client.close()
    server.stop()
    return f"{writes} writes, {trims} trims"


def test_verify_again_after_a_kill(bench):
    """What fio wrote with a flush at its end is verified after a power cut, in a run of its own."""
    need(fio="fio")
    server = bench.serve()
    job = ("--rw=randwrite", "--bsrange=4k-32k", "--iodepth=16", "--size=32m", "--serialize_overlap=1")
    fio(bench, server, *job, "--verify=crc32c", "--do_verify=0", "--end_fsync=1")
    server.kill()
    server.start()
    jobs = fio(bench, server, *job, "--verify=crc32c", "--verify_only", "--verify_fatal=1")
    check(jobs[0]["read"]["total_ios"] > 0, "nothing was verified")
    server.kill()
    # And the check can fail: a flipped byte is seen.
    server.start()
    client = nbd.Client(server.socket)
    block = bytearray(client.read(0, 4096))
    block[1000] ^= 1
    client.write(0, bytes(block))
    client.close()
    try:
        fio(bench, server, *job, "--verify=crc32c", "--verify_only", "--verify_fatal=1")
    except Failed:
        return None
    raise Failed("fio did not see a flipped byte")


def test_model_time(bench):
    """In the model's time: latencies are at least what the flash needs, and lateness is measured for every answer."""
    need(fio="fio")
    server = bench.serve(pace="model")
    fio(bench, server, "--rw=randwrite", "--bs=4k", "--iodepth=4", "--size=4m", "--end_fsync=1")
    server.figures()
    jobs = fio(bench, server, "--rw=randread", "--bs=4k", "--iodepth=1", "--size=4m", "--number_ios=400")
    figures = server.figures()
    modelled = figures["latency_ns"]["read"]
    late = figures["lateness_ns"]
    seen = jobs[0]["read"]["clat_ns"]
    check(late["count"] == modelled["count"] >= 400, f"lateness of {late['count']} answers, {modelled['count']} reads")
    # A TLC read takes tens of microseconds, and no answer may leave before its time.
    check(modelled["mean"] > 20_000, f"modelled reads take {modelled['mean']:.0f} ns")
    check(seen["mean"] >= modelled["mean"], f"fio saw {seen['mean']:.0f} ns, the model says {modelled['mean']:.0f} ns")
    said = server.stop()
    check("later than the model says" in said, f"no word about lateness: {said}")
    model, client, lateness = (spread["mean"] / 1e3 for spread in (modelled, seen, late))
    return f"modelled {model:.0f} us, seen {client:.0f} us, late {lateness:.0f} us"


def test_scaled_time(bench):
    """On a clock that is ten times slower everything takes ten times as long."""
    need(fio="fio")
    server = bench.serve(pace="model*10")
    fio(bench, server, "--rw=write", "--bs=64k", "--size=1m", "--end_fsync=1")
    server.figures()
    jobs = fio(bench, server, "--rw=randread", "--bs=4k", "--iodepth=1", "--size=1m", "--number_ios=100")
    modelled = server.figures()["latency_ns"]["read"]["mean"]
    seen = jobs[0]["read"]["clat_ns"]["mean"]
    check(seen >= 10 * modelled, f"fio saw {seen:.0f} ns, ten times the model is {10 * modelled:.0f} ns")
    server.stop()
    return f"modelled {modelled / 1e3:.0f} us, seen {seen / 1e3:.0f} us"

"""Databases on a file system on a served drive: no committed transaction is lost when its power is cut."""

import os
import pathlib
import pwd
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import sqlite_writer
from attach import Attached, need_attach
from harness import Failed, Skipped, check, need, wait_for


def mounted(bench, kind="ext4", options=(), device="medium"):
    """A served drive with a file system."""
    need_attach(kind)
    server = bench.serve(device, options=options)
    return server, Attached(bench, server, kind).attach().mkfs().mount()


def sqlite(bench, kind, journal, synchronous, count, options=(), device="medium", rows=0, seen=lambda server: None):
    """Cuts the power under a program that commits, and looks for what was committed. The database begins with so many rows; `seen` looks
    at the server before each cut."""
    rng = random.Random(f"{bench.seed} sqlite {journal}")
    server, attached = mounted(bench, kind, options, device)
    path = attached.mountpoint / "database"
    committed = done = 0
    for cut in bench.rounds(count):
        log = bench.path(f"said.{cut}")
        writer = bench.start(sys.executable, pathlib.Path(sqlite_writer.__file__), path, journal, synchronous, str(rows), log=log)
        wait_for(lambda: log.read_text().count("\n") > 3, "commits", 60)
        time.sleep(rng.uniform(0.1, 1.5))
        check(writer.poll() is None, f"the writer ended by itself: {log.read_text()[-300:]}")
        seen(server)
        server.kill()
        writer.wait(timeout=60)
        attached.cut_and_check()
        said = [int(line) for line in log.read_text().split("\n")[:-1] if line.isdigit()]
        check(min(said) > committed, f"id {min(said)} was committed again after {committed}")
        committed = max(said)
        look_at_sqlite(path, committed)
        done += 1
    attached.unmount()
    attached.detach()
    server.stop()
    return f"{done} cuts, {committed} transactions"


def look_at_sqlite(path, committed):
    """Everything that was committed is in the database, which is whole."""
    database = sqlite3.connect(path)
    try:
        found = database.execute("pragma integrity_check").fetchall()
        check(found == [("ok",)], f"integrity_check: {found[:5]}")
        rows = database.execute("select id, payload from t order by id").fetchall()
        numbers = [number for number, _ in rows]
        # One may have been committed and not yet said.
        check(numbers in (list(range(1, committed + 1)), list(range(1, committed + 2))),
              f"{committed} transactions were committed; the database holds {len(numbers)}, up to {numbers[-1:]}")
        for number, payload in rows:
            check(payload == sqlite_writer.payload(number), f"row {number} holds something else")
    finally:
        database.close()


def test_sqlite_wal(bench):
    """SQLite with a write-ahead log and synchronous=full, on ext4: every committed row is there, and the file is whole."""
    return sqlite(bench, "ext4", "wal", "full", 3)


def test_sqlite_wal_with_driver(bench):
    """The same with SHRD's driver between the socket and a drive with a log."""
    return sqlite(bench, "ext4", "wal", "full", 3, bench.with_driver(user="288m"))


def test_sqlite_rollback_journal(bench):
    """SQLite with a rollback journal on xfs. A commit is the journal's deletion, which only synchronous=extra syncs."""
    return sqlite(bench, "xfs", "delete", "extra", 2)


# ---- PostgreSQL ----

def postgres_programs():
    """The newest PostgreSQL's folder of programs."""
    folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if not folders:
        raise Skipped("no PostgreSQL (Debian, Ubuntu: apt-get install postgresql)")
    return folders[-1]


class Postgres:
    """A PostgreSQL server on a mounted drive; it refuses to run as root."""

    def __init__(self, bench, folder):
        need(runuser="util-linux")
        self.bench, self.programs = bench, postgres_programs()
        self.user = "postgres"
        try:
            owner = pwd.getpwnam(self.user)
        except KeyError:
            raise Skipped("no user postgres") from None
        self.data = folder / "pg"
        self.sockets = bench.path("pg")
        self.sockets.mkdir(exist_ok=True)
        os.chown(self.sockets, owner.pw_uid, owner.pw_gid)
        bench.folder.chmod(0o755)
        folder.chmod(0o777)
        self.server = None

    def program(self, name, *options):
        """A command line."""
        return ["runuser", "-u", self.user, "--", self.programs / name, *options]

    def init(self):
        """Makes a database, with a log in segments of 1 MB."""
        self.bench.run(
            *self.program("initdb", "-D", self.data, "--wal-segsize=1", "--auth=trust", "--locale=C"),
            timeout=180,
        )

    def start(self, seconds=120):
        """Starts it, with recovery if it needs one."""
        # On the command line, for a file would have to be synced first. Small buffers and a small log: recovery,
        # checkpoints and recycled segments are part of every life.
        settings = {
            "listen_addresses": "", "unix_socket_directories": self.sockets, "shared_buffers": "4MB", "fsync": "on",
            "synchronous_commit": "on", "min_wal_size": "4MB", "max_wal_size": "16MB", "bgwriter_delay": "10ms",
        }
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        command = self.program("postgres", "-D", self.data, *options)
        self.server = self.bench.start(*command, log=self.bench.path("pg.log"))

        def ready():
            check(self.server.poll() is None, "PostgreSQL ended: " + self.said())
            return self.bench.attempt(*self.program("pg_isready", "-q", "-h", self.sockets)).returncode == 0
        try:
            wait_for(ready, "PostgreSQL to be ready", seconds)
        except Failed as failed:
            raise Failed(f"{failed}: {self.said()}") from None

    def said(self):
        """The end of its log."""
        return self.bench.path("pg.log").read_text(errors="replace")[-1500:]

    def sql(self, statement):
        """One value."""
        command = self.program("psql", "-h", self.sockets, "-d", "postgres", "-Atc", statement)
        return self.bench.run(*command).strip()

    def stop(self, mode):
        """Ends it: `fast` in order, `immediate` after a power cut; in the end by force."""
        done = self.bench.attempt(*self.program("pg_ctl", "-D", self.data, "-m", mode, "-t", "30", "stop"), timeout=60)
        if self.server.poll() is None:
            try:
                self.server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                pass
        for child in processes_below(self.data):
            os.kill(child, 9)
        if self.server.poll() is None:
            self.server.kill()
            self.server.wait(timeout=30)
        return done.returncode == 0


def processes_below(folder):
    """The processes whose working directory is there."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd") == str(folder):
                yield int(process.name)
        except OSError:
            pass


def pgbench(bench, count, options=(), device="medium", scale=1, seen=lambda server: None):
    """Cuts the power under PostgreSQL, and looks for the transactions that pgbench was answered; `seen` looks at the server before each
    cut."""
    need(pgbench="postgresql")
    need_attach("ext4")
    postgres_programs()
    rng = random.Random(f"{bench.seed} pgbench")
    server, attached = mounted(bench, options=options, device=device)
    postgres = Postgres(bench, attached.mountpoint)
    postgres.init()
    postgres.start()
    bench.later(lambda: postgres.stop("immediate"))
    database = ("-h", postgres.sockets, "postgres")
    bench.run(*postgres.program("pgbench", "-q", "-i", "-s", scale, *database), timeout=180)
    clients, acknowledged, done = 4, 0, 0
    for cut in bench.rounds(count):
        logs = postgres.sockets / f"log.{cut}"
        # pgbench writes a line for each transaction whose commit was answered, outside the drive.
        client = bench.start(
            *postgres.program("pgbench", "-n", "-T", "600", "-c", clients, "-l", "--log-prefix", logs, *database),
        )
        time.sleep(rng.uniform(0.8, 2.5))
        check(client.poll() is None, "pgbench ended by itself: " + client.log.read_text()[-500:])
        seen(server)
        server.kill()
        # It loses its connections when the database finds its disk gone.
        postgres.stop("immediate")
        try:
            client.wait(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failed("pgbench did not end with its database") from None
        acknowledged_now = sum(log.read_text().count("\n") for log in postgres.sockets.glob(f"log.{cut}.*"))
        check(acknowledged_now > 0, "no transaction was acknowledged: " + client.log.read_text()[-500:])
        acknowledged += acknowledged_now
        attached.cut_and_check()
        postgres.start()
        history = int(postgres.sql("select count(*) from pgbench_history"))
        check(acknowledged <= history <= acknowledged + clients,
              f"{acknowledged} transactions were acknowledged, the history has {history}")
        # Those that were committed and not acknowledged count from now on.
        acknowledged = history
        sums = postgres.sql("select (select coalesce(sum(delta), 0) from pgbench_history), "
                            "(select sum(abalance) from pgbench_accounts), "
                            "(select sum(bbalance) from pgbench_branches), "
                            "(select sum(tbalance) from pgbench_tellers)").split("|")
        check(len(set(sums)) == 1, f"history, accounts, branches and tellers differ: {sums}")
        done += 1
    # Every page of every table and index.
    every = ("-h", postgres.sockets, "--install-missing", "--heapallindexed", "postgres")
    bench.run(*postgres.program("pg_amcheck", *every))
    check(postgres.stop("fast"), "PostgreSQL did not stop: " + postgres.said())
    attached.unmount()
    attached.detach()
    server.stop()
    return f"{done} cuts, {acknowledged} transactions"


def test_postgresql_pgbench(bench):
    """PostgreSQL with pgbench on ext4: every acknowledged transaction is in the history, and the balances agree."""
    return pgbench(bench, 3)


def test_postgresql_pgbench_with_driver(bench):
    """The same with SHRD's driver between the socket and a drive with a log."""
    return pgbench(bench, 2, bench.with_driver(user="288m"))


# ---- RocksDB ----

def test_rocksdb_synced_writes(bench):
    """RocksDB with a synced log on ext4: as many keys as were acknowledged are there, in consistent files."""
    need(db_bench="rocksdb-tools", ldb="rocksdb-tools")
    rng = random.Random(f"{bench.seed} rocksdb")
    server, attached = mounted(bench)
    total = done = 0
    for cut in bench.rounds(3):
        folder = attached.mountpoint / "rocks"
        if folder.exists():
            shutil.rmtree(folder)
        # Small buffers: flushes and compactions run all the time. Keys are written in order, so that their number
        # says which are there.
        writer = bench.start(
            "db_bench", "--benchmarks=fillseq", f"--db={folder}", "--sync=1", "--num=10000000", "--value_size=1000",
            "--write_buffer_size=262144", "--target_file_size_base=262144", "--compression_type=none",
            "--stats_interval=1", "--level0_file_num_compaction_trigger=2", "--histogram=0",
        )
        wait_for(lambda: counted(writer.log) > 20, "db_bench's first keys", 60)
        time.sleep(rng.uniform(0.3, 2.0))
        check(writer.poll() is None, "db_bench ended by itself: " + writer.log.read_text(errors="replace")[-500:])
        before = counted(writer.log)
        server.kill()
        try:
            writer.wait(timeout=20)
        except subprocess.TimeoutExpired:
            # It waits for the dead disk.
            writer.kill()
            writer.wait(timeout=30)
        attached.cut_and_check()
        # db_bench counts a write when it returns, also the one that failed, which is its last.
        keys = max(before, counted(writer.log) - 1)
        bench.run("ldb", f"--db={folder}", "checkconsistency", timeout=60)
        found = bench.run("ldb", f"--db={folder}", "dump", "--count_only", timeout=60)
        there = int(re.search(r"Keys in range: (\d+)", found)[1])
        check(there >= keys, f"{keys} synced writes were acknowledged to db_bench, {there} keys are there")
        total += there
        done += 1
    attached.unmount()
    attached.detach()
    server.stop()
    return f"{done} cuts, {total} keys"


def counted(log):
    """How many writes have returned to db_bench: it says so after each, `thread 0: (1,N) ops`."""
    text = log.read_text(errors="replace")
    found = [int(number) for number in re.findall(r"thread 0: \(\d+,(\d+)\) ops", text)]
    return max(found, default=0)

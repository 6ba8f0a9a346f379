#!/usr/bin/env python3
"""YCSB's workload A on MariaDB, with any share of reads.

    ycsb.py load  --socket PATH --records N [--seed N]
    ycsb.py run   --socket PATH --records N --seconds S --journal FILE [--reads PERCENT] [--connections 20] [--seed N]
    ycsb.py check --socket PATH --records N --journal FILE

As in YCSB's JDBC binding: a table of a key and ten fields of 100 bytes, keys by hash, so that records are inserted and lie in no
order; scrambled Zipfian choice (0.99); a read takes a whole record, an update one field, each in its own transaction.
A field's first bytes say whose it is: `check` counts the records, looks for fields of other records, and reads back
fields that only one client wrote, which must hold what it wrote last."""

import argparse
import collections
import itertools
import random
import sys
import time

import client

DATABASE = "ycsb"
FIELDS = 10
FIELD_BYTES = 100
# The popularity of YCSB's ScrambledZipfianGenerator: of 10^10 items, whatever the number of records, spread by a hash.
THETA = 0.99
ITEMS = 10_000_000_000
ZETA = 26.46902820178302
# Fields that `check` reads back.
READ_BACK = 5000
TABLE = f"""CREATE TABLE usertable (ycsb_key VARCHAR(255) PRIMARY KEY,
    {", ".join(f"field{number} TEXT" for number in range(FIELDS))})"""


def fnv64(number):
    """YCSB's hash of a number: FNV over its eight bytes, without its sign."""
    hashed = 0xCBF29CE484222325
    for _ in range(8):
        hashed = ((hashed ^ (number & 0xFF)) * 1099511628211) & 0xFFFF_FFFF_FFFF_FFFF
        number >>= 8
    return hashed if hashed < 1 << 63 else (1 << 64) - hashed


def key_of(record):
    return f"user{fnv64(record)}"


class Zipfian:
    """Draws records by Zipf's law (Gray and others, SIGMOD 1994), the popular ones spread over all records."""

    def __init__(self, rng, records):
        self.rng = rng
        self.records = records
        zeta_of_two = 1 + 0.5**THETA
        self.alpha = 1 / (1 - THETA)
        self.eta = (1 - (2 / ITEMS) ** (1 - THETA)) / (1 - zeta_of_two / ZETA)
        self.second = zeta_of_two

    def __call__(self):
        drawn = self.rng.random()
        scaled = drawn * ZETA
        if scaled < 1:
            rank = 0
        elif scaled < self.second:
            rank = 1
        else:
            rank = int(ITEMS * (self.eta * drawn - self.eta + 1) ** self.alpha)
        return fnv64(rank) % self.records


def content(record, writer, letters):
    """A field of 100 bytes: its record, who wrote it, and letters."""
    head = f"{record}:{writer}:"
    return head + letters(FIELD_BYTES - len(head))


# Load


def load(arguments):
    connection = client.connect(arguments)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
        cursor.execute(f"USE {DATABASE}")
        cursor.execute(TABLE)
    client.side_by_side(load_part, 2, arguments, 2)


def load_part(number, arguments, parts):
    letters = client.Letters(client.generator(arguments.seed, "load", number))
    connection = client.connect(arguments, DATABASE)
    records = range(number, arguments.records, parts)
    made = ((key_of(record), *(content(record, "load", letters) for _ in range(FIELDS))) for record in records)
    client.insert(connection, "usertable", made)


# Run


def run_client(number, arguments):
    rng = client.generator(arguments.seed, "client", number)
    letters = client.Letters(rng)
    connection = client.connect(arguments, DATABASE)
    connection.autocommit(True)
    cursor = connection.cursor()
    chosen = Zipfian(rng, arguments.records)
    written, sequence = {}, itertools.count(1)

    def operation():
        record = chosen()
        if 100 * rng.random() < arguments.reads:
            cursor.execute("SELECT * FROM usertable WHERE ycsb_key = %s", (key_of(record),))
            if len(cursor.fetchall()) != 1:
                sys.exit(f"error: record {record} is not there")
            return "read"
        field = rng.randrange(FIELDS)
        writer = f"{arguments.seed}.{number}.{next(sequence)}"
        text = content(record, writer, letters)
        cursor.execute(f"UPDATE usertable SET field{field} = %s WHERE ycsb_key = %s", (text, key_of(record)))
        written[f"{record}.{field}"] = writer
        return "update"

    done = client.until(time.monotonic() + arguments.seconds, connection, rng, operation)
    return done, written


def run(arguments):
    results = client.side_by_side(run_client, arguments.connections, arguments)
    done = sum((done for done, _ in results), collections.Counter())
    # What several clients wrote may end as any one's.
    last = collections.defaultdict(list)
    for _, written in results:
        for field, writer in written.items():
            last[field].append(writer)
    client.journal(arguments.journal, {"done": done, "last": last})
    for kind, count in sorted(done.items()):
        print(f"{kind:24}{count:8}{count / arguments.seconds:10.1f} /s")


# Check


def check(arguments):
    connection = client.connect(arguments, DATABASE)
    failures = []
    if (found := client.value(connection, "SELECT COUNT(*) FROM usertable")) != arguments.records:
        failures.append(f"{found} records, {arguments.records} were loaded")
    last = {}
    for entry in client.journal_of(arguments.journal):
        last.update(entry["last"])
    alone = sorted(field for field, writers in last.items() if len(writers) == 1)
    sample = random.Random(1).sample(alone, min(READ_BACK, len(alone)))
    for place in sample:
        record, field = (int(part) for part in place.split("."))
        texts = client.rows(connection, f"SELECT * FROM usertable WHERE ycsb_key = '{key_of(record)}'")[0][1:]
        if strangers := [text for text in texts if len(text) != FIELD_BYTES or not text.startswith(f"{record}:")]:
            failures.append(f"record {record}: found {strangers[0]!r}")
        writer = texts[field].split(":")[1]
        if writer != last[place][0]:
            failures.append(f"record {record}, field {field}: of {writer}, {last[place][0]} wrote it last")
    return client.verdict(failures[:20], f"{found} records; {len(sample)} of {len(alone)} fields that one client wrote")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["load", "run", "check"])
    parser.add_argument("--socket", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--reads", type=float, default=50)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--journal", default="ycsb.journal")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    return {"load": load, "run": run, "check": check}[arguments.action](arguments)


if __name__ == "__main__":
    sys.exit(main())

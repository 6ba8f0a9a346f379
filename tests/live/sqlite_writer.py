#!/usr/bin/env python3
"""Commits to a SQLite database for ever, and says each committed id: sqlite_writer.py DATABASE JOURNAL SYNCHRONOUS [ROWS].

The first ROWS rows are one transaction."""

import random
import sqlite3
import sys


def payload(number):
    """What row `number` holds."""
    return random.Random(number).randbytes(50 + number * 31 % 3000)


def main(path, journal, synchronous, rows=0):
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"pragma journal_mode = {journal}")
    database.execute(f"pragma synchronous = {synchronous}")
    database.execute("pragma wal_autocheckpoint = 50")
    database.execute("pragma cache_size = 50")
    database.execute("create table if not exists t (id integer primary key, payload blob, touched integer)")
    database.execute("create index if not exists i on t (touched)")
    number = (database.execute("select max(id) from t").fetchone()[0] or 0) + 1
    if number <= int(rows):
        many = ((row, payload(row)) for row in range(number, int(rows) + 1))
        database.execute("begin immediate")
        database.executemany("insert into t values (?, ?, 0)", many)
        database.execute("commit")
        number = int(rows) + 1
        print(number - 1, flush=True)
    while True:
        database.execute("begin immediate")
        database.execute("insert into t values (?, ?, 0)", (number, payload(number)))
        # Old pages change too, which a rollback journal has to bring back.
        database.execute("update t set touched = ? where id = ?", (number, 1 + number * 7919 % number))
        database.execute("commit")
        print(number, flush=True)
        number += 1


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except sqlite3.Error as error:
        # The power is gone.
        print("ended:", error, flush=True)

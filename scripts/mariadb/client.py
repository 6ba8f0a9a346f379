"""What the drivers of TPC-C and YCSB share: connections, clients side by side, and a journal of what was committed.

Needs PyMySQL (Debian: python3-pymysql). Each client is a process with a connection and a generator of its own, seeded with the
run's seed and the client's number: what a client asks for depends on nothing else."""

import collections
import json
import multiprocessing
import random
import time

import pymysql

# The server ended a transaction for another one's sake: a deadlock, or a lock that was not given in time.
RETRIED = (1205, 1213)


def connect(arguments, database=None):
    return pymysql.connect(unix_socket=arguments.socket, user="root", database=database, charset="latin1")


def rows(connection, query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def value(connection, query):
    """The only value of the only row; a sum over nothing is 0."""
    return rows(connection, query)[0][0] or 0


def insert(connection, table, tuples, at_once=500):
    """Inserts tuples of numbers and plain strings (no quotes in them), so many in a statement."""
    with connection.cursor() as cursor:
        batch = []
        for row in tuples:
            batch.append(str(row).replace("None", "NULL"))
            if len(batch) == at_once:
                cursor.execute(f"INSERT INTO {table} VALUES {','.join(batch)}")
                batch = []
        if batch:
            cursor.execute(f"INSERT INTO {table} VALUES {','.join(batch)}")
    connection.commit()


class Letters:
    """Random strings, cut from one long random text: quick to make, and no two tables look alike."""

    def __init__(self, rng, alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"):
        self.rng = rng
        self.text = "".join(rng.choices(alphabet, k=1 << 17))

    def __call__(self, least, most=None):
        length = self.rng.randint(least, most or least)
        start = self.rng.randrange(len(self.text) - length)
        return self.text[start : start + length]


def side_by_side(work, count, *arguments, at_once=None):
    """Calls work(number, *arguments) for each number below count in processes of their own; returns what they return."""
    with multiprocessing.get_context("fork").Pool(at_once or count) as pool:
        return pool.starmap(work, [(number, *arguments) for number in range(count)], chunksize=1)


def until(deadline, connection, rng, transaction):
    """Runs transactions until the deadline. One that the server ended is done again with the same draws. Returns how many of
    each kind were committed or rolled back as planned, and how often one was done again."""
    done = collections.Counter()
    while time.monotonic() < deadline:
        before = rng.getstate()
        try:
            done[transaction()] += 1
        except pymysql.err.OperationalError as error:
            if error.args[0] not in RETRIED:
                raise
            connection.rollback()
            rng.setstate(before)
            done["done again"] += 1
    return done


def generator(seed, *names):
    return random.Random("/".join(str(name) for name in (seed, *names)))


def journal(path, entry):
    """Adds a line to the journal, which the checks read."""
    with open(path, "a", encoding="ascii") as file:
        file.write(json.dumps(entry) + "\n")


def journal_of(path):
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def verdict(failures, checked):
    """Prints what was found wrong, or what was checked; the exit code of the checks."""
    for failure in failures:
        print(f"FAILED {failure}")
    if not failures:
        print(f"checked: {checked}")
    return 1 if failures else 0

#!/usr/bin/env python3
"""TPC-C (specification 5.11) on MariaDB.

    tpcc.py load  --socket PATH --warehouses N [--seed N]
    tpcc.py run   --socket PATH --warehouses N --seconds S --journal FILE [--connections 20] [--seed N]
    tpcc.py check --socket PATH --warehouses N --journal FILE

All five transactions with the least mix of clause 5.2.3, non-uniform random numbers (2.1.6), 1 % of New-Orders rolled back,
1 % of order lines and 15 % of payments of another warehouse. Like tpcc-mysql: no keying and thinking times, a warehouse
drawn for each transaction, foreign keys kept by the database. `check` holds consistency conditions 1 to 4 (3.3.2) and
compares the tables with what the clients committed. Clause numbers are the specification's."""

import argparse
import collections
import sys
import time

import client

DATABASE = "tpcc"
DISTRICTS = 10
CUSTOMERS = 3000  # in a district, and as many orders at first
ITEMS = 100_000
UNDELIVERED_FROM = 2101  # the first order without delivery, of 3,000
SYLLABLES = "BAR OUGHT ABLE PRI PRES ESE ANTI CALLY ATION EING".split()
NOW = "2026-01-01 00:00:00"
UNUSED_ITEM = ITEMS + 1
# Clause 5.2.3: at least 43 % Payment and 4 % of each other one; New-Order has what is left.
MIX = {"new_order": 45, "payment": 43, "order_status": 4, "delivery": 4, "stock_level": 4}
# The constants C of non-uniform numbers, by their A (2.1.6.1): the last name's differs by 98 between load and run.
C_OF_LOAD = {255: 123, 1023: 456, 8191: 3456}
C_OF_RUN = {**C_OF_LOAD, 255: 221}

TABLES = [
    """CREATE TABLE warehouse (w_id SMALLINT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20),
    w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2), PRIMARY KEY (w_id))""",
    """CREATE TABLE district (d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20),
    d_street_2 VARCHAR(20), d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2),
    d_next_o_id INT, PRIMARY KEY (d_w_id, d_id), FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id))""",
    """CREATE TABLE customer (c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id SMALLINT NOT NULL, c_first VARCHAR(16),
    c_middle CHAR(2), c_last VARCHAR(16), c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), c_city VARCHAR(20), c_state CHAR(2),
    c_zip CHAR(9), c_phone CHAR(16), c_since DATETIME, c_credit CHAR(2), c_credit_lim DECIMAL(12,2), c_discount DECIMAL(4,4),
    c_balance DECIMAL(12,2), c_ytd_payment DECIMAL(12,2), c_payment_cnt SMALLINT, c_delivery_cnt SMALLINT, c_data VARCHAR(500),
    PRIMARY KEY (c_w_id, c_d_id, c_id), KEY by_name (c_w_id, c_d_id, c_last, c_first),
    FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id))""",
    """CREATE TABLE history (h_c_id INT, h_c_d_id TINYINT, h_c_w_id SMALLINT, h_d_id TINYINT, h_w_id SMALLINT, h_date DATETIME,
    h_amount DECIMAL(6,2), h_data VARCHAR(24), FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id),
    FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id))""",
    """CREATE TABLE orders (o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT, o_entry_d DATETIME,
    o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id),
    KEY by_customer (o_w_id, o_d_id, o_c_id, o_id), FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id))""",
    """CREATE TABLE new_order (no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id SMALLINT NOT NULL,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id), FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id))""",
    """CREATE TABLE item (i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50),
    PRIMARY KEY (i_id))""",
    f"""CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT,
    {", ".join(f"s_dist_{number:02d} CHAR(24)" for number in range(1, DISTRICTS + 1))}, s_ytd DECIMAL(8,0), s_order_cnt SMALLINT,
    s_remote_cnt SMALLINT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id), FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id),
    FOREIGN KEY (s_i_id) REFERENCES item (i_id))""",
    """CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id SMALLINT NOT NULL, ol_number TINYINT NOT NULL,
    ol_i_id INT, ol_supply_w_id SMALLINT, ol_delivery_d DATETIME, ol_quantity TINYINT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24),
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number), FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id),
    FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id))""",
]


def last_name(number):
    """Clause 4.3.2.3."""
    return SYLLABLES[number // 100] + SYLLABLES[number // 10 % 10] + SYLLABLES[number % 10]


def non_uniform(rng, constants, a, low, high):
    """Clause 2.1.6."""
    return ((rng.randint(0, a) | rng.randint(low, high)) + constants[a]) % (high - low + 1) + low


# Load (clause 4.3.3)


def load(arguments):
    connection = client.connect(arguments)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
        cursor.execute(f"USE {DATABASE}")
        for table in TABLES:
            cursor.execute(table)
        cursor.execute("SET foreign_key_checks = 0")
    rng = client.generator(arguments.seed, "items")
    letters = client.Letters(rng)
    items = (
        (item, rng.randint(1, 10_000), letters(14, 24), rng.randint(100, 10_000) / 100, data_of(rng, letters))
        for item in range(1, ITEMS + 1)
    )
    client.insert(connection, "item", items)
    client.side_by_side(load_warehouse, arguments.warehouses, arguments, at_once=2)


def data_of(rng, letters):
    """I_DATA and S_DATA: a tenth holds ORIGINAL somewhere."""
    data = letters(26, 50)
    if rng.random() >= 0.1:
        return data
    start = rng.randint(0, len(data) - 8)
    return data[:start] + "ORIGINAL" + data[start + 8 :]


def address(rng, letters):
    return letters(10, 20), letters(10, 20), letters(10, 20), letters(2), f"{rng.randint(0, 9999):04d}11111"


def load_warehouse(number, arguments):
    warehouse = number + 1
    rng = client.generator(arguments.seed, "warehouse", warehouse)
    letters = client.Letters(rng)
    connection = client.connect(arguments, DATABASE)
    with connection.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
    row = (warehouse, letters(6, 10), *address(rng, letters), rng.randint(0, 2000) / 10_000, 300_000)
    client.insert(connection, "warehouse", [row])
    stock = (
        (item, warehouse, rng.randint(10, 100), *(letters(24) for _ in range(DISTRICTS)), 0, 0, 0, data_of(rng, letters))
        for item in range(1, ITEMS + 1)
    )
    client.insert(connection, "stock", stock)
    for district in range(1, DISTRICTS + 1):
        row = (district, warehouse, letters(6, 10), *address(rng, letters), rng.randint(0, 2000) / 10_000, 30_000, CUSTOMERS + 1)
        client.insert(connection, "district", [row])
        client.insert(connection, "customer", customers(rng, letters, warehouse, district))
        history = (
            (customer, district, warehouse, district, warehouse, NOW, 10, letters(12, 24)) for customer in range(1, CUSTOMERS + 1)
        )
        client.insert(connection, "history", history)
        load_orders(connection, rng, letters, warehouse, district)


def customers(rng, letters, warehouse, district):
    for customer in range(1, CUSTOMERS + 1):
        name = customer - 1 if customer <= 1000 else non_uniform(rng, C_OF_LOAD, 255, 0, 999)
        credit = "BC" if rng.random() < 0.1 else "GC"
        phone = f"{rng.randrange(10**16):016d}"
        yield (
            customer, district, warehouse, letters(8, 16), "OE", last_name(name), *address(rng, letters), phone, NOW, credit, 50_000,
            rng.randint(0, 5000) / 10_000, -10, 10, 1, 0, letters(300, 500),
        )  # fmt: skip


def load_orders(connection, rng, letters, warehouse, district):
    buyers = list(range(1, CUSTOMERS + 1))
    rng.shuffle(buyers)
    orders, lines = [], []
    for order, buyer in enumerate(buyers, 1):
        delivered = order < UNDELIVERED_FROM
        count = rng.randint(5, 15)
        orders.append((order, district, warehouse, buyer, NOW, rng.randint(1, 10) if delivered else None, count, 1))
        for line in range(1, count + 1):
            amount = 0 if delivered else rng.randint(1, 999_999) / 100
            when = NOW if delivered else None
            item = rng.randint(1, ITEMS)
            lines.append((order, district, warehouse, line, item, warehouse, when, 5, amount, letters(24)))
    client.insert(connection, "orders", orders)
    client.insert(connection, "order_line", lines)
    client.insert(connection, "new_order", ((order, district, warehouse) for order in range(UNDELIVERED_FROM, CUSTOMERS + 1)))


# Transactions (clause 2.4 to 2.8)


class Terminal:
    """A connection that sends transactions. Each of the five draws its input first, so that it can be done again."""

    def __init__(self, connection, rng, warehouses):
        self.connection = connection
        self.cursor = connection.cursor()
        self.rng = rng
        self.warehouses = warehouses
        self.letters = client.Letters(client.generator(0, "letters"))
        self.letters.rng = rng
        self.delivered = 0

    def one(self, query, *values):
        self.cursor.execute(query, values)
        return self.cursor.fetchone()

    def all(self, query, *values):
        self.cursor.execute(query, values)
        return self.cursor.fetchall()

    def do(self, statement, *values):
        self.cursor.execute(statement, values)

    def transaction(self):
        kind = self.rng.choices(list(MIX), MIX.values())[0]
        warehouse = self.rng.randint(1, self.warehouses)
        return getattr(self, kind)(warehouse)

    def other_warehouse(self, warehouse):
        if self.warehouses == 1:
            return warehouse
        other = self.rng.randint(1, self.warehouses - 1)
        return other + (other >= warehouse)

    def district(self):
        return self.rng.randint(1, DISTRICTS)

    def customer(self):
        return non_uniform(self.rng, C_OF_RUN, 1023, 1, CUSTOMERS)

    def customer_or_name(self):
        """60 % are chosen by last name: a number, or a name."""
        if self.rng.random() < 0.6:
            return last_name(non_uniform(self.rng, C_OF_RUN, 255, 0, 999))
        return self.customer()

    def number_of(self, customer, warehouse, district):
        """The number of a customer: of those with a name the middle one by first name, rounded up."""
        if isinstance(customer, int):
            return customer
        named = self.all(
            "SELECT c_id FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_last = %s ORDER BY c_first",
            warehouse, district, customer,
        )  # fmt: skip
        return named[(len(named) - 1) // 2][0]

    def new_order(self, warehouse):
        district, customer = self.district(), self.customer()
        lines = []
        for _ in range(self.rng.randint(5, 15)):
            item = non_uniform(self.rng, C_OF_RUN, 8191, 1, ITEMS)
            supplier = self.other_warehouse(warehouse) if self.rng.random() < 0.01 else warehouse
            lines.append((supplier, item, self.rng.randint(1, 10)))
        # In one order for all, so that few transactions wait for one another in a circle.
        lines.sort()
        rolled_back = self.rng.random() < 0.01
        if rolled_back:
            lines[-1] = (lines[-1][0], UNUSED_ITEM, lines[-1][2])

        self.one(
            "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse"
            " WHERE w_id = %s AND c_w_id = w_id AND c_d_id = %s AND c_id = %s",
            warehouse, district, customer,
        )  # fmt: skip
        (order,) = self.one("SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s FOR UPDATE", warehouse, district)
        self.do("UPDATE district SET d_next_o_id = %s WHERE d_w_id = %s AND d_id = %s", order + 1, warehouse, district)
        local = all(supplier == warehouse for supplier, _, _ in lines)
        self.do(
            "INSERT INTO orders VALUES (%s, %s, %s, %s, NOW(), NULL, %s, %s)",
            order, district, warehouse, customer, len(lines), int(local),
        )  # fmt: skip
        self.do("INSERT INTO new_order VALUES (%s, %s, %s)", order, district, warehouse)
        for number, (supplier, item, quantity) in enumerate(lines, 1):
            found = self.one("SELECT i_price, i_name, i_data FROM item WHERE i_id = %s", item)
            if found is None:
                self.connection.rollback()
                return "new_order rolled back"
            left, info, _ = self.one(
                f"SELECT s_quantity, s_dist_{district:02d}, s_data FROM stock WHERE s_i_id = %s AND s_w_id = %s FOR UPDATE",
                item, supplier,
            )  # fmt: skip
            left = left - quantity if left >= quantity + 10 else left - quantity + 91
            self.do(
                "UPDATE stock SET s_quantity = %s, s_ytd = s_ytd + %s, s_order_cnt = s_order_cnt + 1,"
                " s_remote_cnt = s_remote_cnt + %s WHERE s_i_id = %s AND s_w_id = %s",
                left, quantity, int(supplier != warehouse), item, supplier,
            )  # fmt: skip
            self.do(
                "INSERT INTO order_line VALUES (%s, %s, %s, %s, %s, %s, NULL, %s, %s, %s)",
                order, district, warehouse, number, item, supplier, quantity, quantity * found[0], info,
            )  # fmt: skip
        self.connection.commit()
        return "new_order"

    def payment(self, warehouse):
        district, customer = self.district(), self.customer_or_name()
        home = warehouse if self.rng.random() < 0.85 else self.other_warehouse(warehouse)
        home_district = district if home == warehouse else self.district()
        amount = self.rng.randint(100, 500_000) / 100
        data = self.letters(12, 24)

        self.do("UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s", amount, warehouse)
        self.one("SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = %s", warehouse)
        self.do("UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s", amount, warehouse, district)
        self.one(
            "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = %s AND d_id = %s",
            warehouse, district,
        )  # fmt: skip
        number = self.number_of(customer, home, home_district)
        place = (home, home_district, number)
        where = "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
        *_, credit = self.one(
            "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit_lim, c_discount,"
            f" c_balance, c_since, c_credit FROM customer {where} FOR UPDATE",
            *place,
        )
        paid = "UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s, c_payment_cnt = c_payment_cnt + 1"
        if credit == "BC":
            added = f"{number} {home_district} {home} {district} {warehouse} {amount} "
            self.do(f"{paid}, c_data = LEFT(CONCAT(%s, c_data), 500) {where}", amount, amount, added, *place)
        else:
            self.do(f"{paid} {where}", amount, amount, *place)
        self.do(
            "INSERT INTO history VALUES (%s, %s, %s, %s, %s, NOW(), %s, %s)",
            number, home_district, home, district, warehouse, amount, data,
        )  # fmt: skip
        self.connection.commit()
        return "payment"

    def order_status(self, warehouse):
        district, customer = self.district(), self.customer_or_name()

        number = self.number_of(customer, warehouse, district)
        place = (warehouse, district, number)
        self.one("SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s", *place)
        order, _, _ = self.one(
            "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_c_id = %s"
            " ORDER BY o_id DESC LIMIT 1",
            *place,
        )
        self.all(
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line"
            " WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s",
            warehouse, district, order,
        )  # fmt: skip
        self.connection.commit()
        return "order_status"

    def delivery(self, warehouse):
        carrier = self.rng.randint(1, 10)

        delivered = 0
        for district in range(1, DISTRICTS + 1):
            oldest = self.one(
                "SELECT no_o_id FROM new_order WHERE no_w_id = %s AND no_d_id = %s ORDER BY no_o_id LIMIT 1 FOR UPDATE",
                warehouse, district,
            )  # fmt: skip
            if oldest is None:
                continue
            place = (warehouse, district, oldest[0])
            self.do("DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s AND no_o_id = %s", *place)
            (customer,) = self.one("SELECT o_c_id FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s", *place)
            self.do("UPDATE orders SET o_carrier_id = %s WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s", carrier, *place)
            lines = "ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
            self.do(f"UPDATE order_line SET ol_delivery_d = NOW() WHERE {lines}", *place)
            (amount,) = self.one(f"SELECT SUM(ol_amount) FROM order_line WHERE {lines}", *place)
            self.do(
                "UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1"
                " WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s",
                amount, warehouse, district, customer,
            )  # fmt: skip
            delivered += 1
        self.connection.commit()
        self.delivered += delivered
        return "delivery"

    def stock_level(self, warehouse):
        district, threshold = self.district(), self.rng.randint(10, 20)

        (following,) = self.one("SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s", warehouse, district)
        self.one(
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id < %s"
            " AND ol_o_id >= %s AND s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < %s",
            warehouse, district, following, following - 20, threshold,
        )  # fmt: skip
        self.connection.commit()
        return "stock_level"


def run_terminal(number, arguments):
    rng = client.generator(arguments.seed, "terminal", number)
    connection = client.connect(arguments, DATABASE)
    terminal = Terminal(connection, rng, arguments.warehouses)
    done = client.until(time.monotonic() + arguments.seconds, connection, rng, terminal.transaction)
    done["orders delivered"] = terminal.delivered
    return done


def run(arguments):
    done = sum(client.side_by_side(run_terminal, arguments.connections, arguments), collections.Counter())
    client.journal(arguments.journal, done)
    for kind, count in sorted(done.items()):
        print(f"{kind:24}{count:8}{count / arguments.seconds:10.1f} /s")


# Checks (clause 3.3.2)

# Each finds the districts or warehouses that do not hold it.
CONDITIONS = {
    "1: W_YTD = sum(D_YTD)": """SELECT w_id FROM warehouse JOIN district ON d_w_id = w_id GROUP BY w_id
        HAVING MAX(w_ytd) <> SUM(d_ytd)""",
    "2: D_NEXT_O_ID - 1 = max(O_ID)": """SELECT d_w_id, d_id FROM district JOIN orders ON o_w_id = d_w_id AND o_d_id = d_id
        GROUP BY d_w_id, d_id HAVING MAX(d_next_o_id) - 1 <> MAX(o_id)""",
    "2: D_NEXT_O_ID - 1 = max(NO_O_ID)": """SELECT d_w_id, d_id FROM district JOIN new_order ON no_w_id = d_w_id AND no_d_id = d_id
        GROUP BY d_w_id, d_id HAVING MAX(d_next_o_id) - 1 <> MAX(no_o_id)""",
    "3: max(NO_O_ID) - min(NO_O_ID) + 1 = count": """SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id
        HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)""",
    "4: sum(O_OL_CNT) = count(ORDER_LINE)": """SELECT o_w_id, o_d_id FROM
        (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS stated FROM orders GROUP BY o_w_id, o_d_id) AS o JOIN
        (SELECT ol_w_id, ol_d_id, COUNT(*) AS there FROM order_line GROUP BY ol_w_id, ol_d_id) AS l
        ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE stated <> there""",
}


def check(arguments):
    connection = client.connect(arguments, DATABASE)
    failures = []
    for condition, query in CONDITIONS.items():
        if found := client.rows(connection, query):
            failures.append(f"consistency condition {condition}: not held by {found[:5]}")
    committed = sum((collections.Counter(entry) for entry in client.journal_of(arguments.journal)), collections.Counter())
    districts = arguments.warehouses * DISTRICTS
    compared = {
        "new_order": f"SELECT SUM(d_next_o_id) - {districts * (CUSTOMERS + 1)} FROM district",
        "payment": f"SELECT COUNT(*) - {districts * CUSTOMERS} FROM history",
        "orders delivered": "SELECT SUM(c_delivery_cnt) FROM customer",
    }
    for kind, query in compared.items():
        if (found := client.value(connection, query)) != committed[kind]:
            failures.append(f"{kind}: the clients committed {committed[kind]}, the tables have {found}")
    counts = ", ".join(f"{committed[kind]} {kind}" for kind in compared)
    return client.verdict(failures, f"consistency conditions 1 to 4; {counts}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["load", "run", "check"])
    parser.add_argument("--socket", required=True)
    parser.add_argument("--warehouses", type=int, required=True)
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--journal", default="tpcc.journal")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    return {"load": load, "run": run, "check": check}[arguments.action](arguments)


if __name__ == "__main__":
    sys.exit(main())

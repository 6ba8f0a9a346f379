"""Pages whose numbers come from a script: what the scripts of this folder share to hold them against what is found.

A script formats the rows of its tables and the clauses of its prose that have numbers in them. `Page` finds them on the
page, keeps what differs, and ends with 1 if anything does."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cells(line):
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


class Page:
    """A page of the documentation, and what it says otherwise than it should."""

    def __init__(self, path):
        self.path = path
        self.text = (ROOT / path).read_text()
        self.lines = self.text.split("\n")
        self.prose = " ".join(self.text.split())
        self.checked, self.differing = 0, []

    def differs(self, what):
        self.differing.append(what)
        print(f"{self.path}: {what}", flush=True)

    def table(self, name):
        """The table below `**name**` or a heading of that name: its header, and its rows by their first cell."""
        starts = [at for at, line in enumerate(self.lines) if line.strip("#* ") == name and line[:1] in "#*"]
        if len(starts) != 1:
            self.differs(f"found {len(starts)} tables '{name}', expected one")
            return [], {}
        found = []
        for line in self.lines[starts[0] + 1:]:
            if line.startswith("|"):
                found.append(cells(line))
            elif found or line[:1] in ("#", "*") and line.strip("#* "):
                break
        if len(found) < 3:
            self.differs(f"found no table below '{name}'")
            return [], {}
        return found[0], {row[0]: row for row in found[2:]}

    def rows(self, name, rows, whole=False):
        """Holds rows of a table, as they would be printed, against those of the page; `whole`: it has no others."""
        header, known = self.table(name)
        if not header:
            return
        for row in map(cells, rows):
            self.checked += 1
            on_page = known.pop(row[0], None)
            if on_page is None:
                self.differs(f"{name}: no row '{row[0]}'; found {' | '.join(row)}")
                continue
            for column, says, found in zip(header, on_page, row, strict=True):
                if says != found:
                    self.differs(f"{name}, {row[0]}, {column}: the page says {says}, found {found}")
        for key in known if whole else ():
            self.differs(f"{name}: a row '{key}' that the script does not know")

    def says(self, clause):
        """Holds a clause with numbers against the page's prose, however its lines are broken."""
        self.checked += 1
        clause = " ".join(clause.split())
        if clause not in self.prose:
            # The same words with other numbers, to show what the page says.
            words = re.split(r"\d[\d,.]*\d|\d", clause)
            similar = re.search(r"\d(?:[\d,.]*\d)?".join(map(re.escape, words)), self.prose)
            says = f"the page says '{similar[0]}'" if similar else "the page does not say it"
            self.differs(f"found '{clause}'; {says}")

    def told(self):
        """Whether the page differs from what was found; says how much was compared."""
        if self.differing:
            print(f"{self.path}: {len(self.differing)} differences in {self.checked} rows, lines and clauses")
        else:
            print(f"{self.path}: {self.checked} rows, lines and clauses are as found")
        sys.stdout.flush()
        return bool(self.differing)

    def end(self):
        """Ends the script: 1 if the page differs from what was found."""
        sys.exit(1 if self.told() else 0)


def output(command, cwd=ROOT):
    """What a command prints, also on standard error; the script ends with what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr}")
    return done.stdout + done.stderr


def results(ssdlab, *arguments, cwd=ROOT):
    """What `ssdlab run` finds, by drive."""
    command = [ssdlab, "run", *arguments, "--json", "--quiet", "--no-snapshot"]
    return json.loads(output(command, cwd))["devices"]


def binary(name):
    """The command to run, wherever the script changes to."""
    return str(pathlib.Path(name).resolve()) if "/" in name else name


def options(arguments, known=("--check", "--quick")):
    """Options of a script, and what else it was given; `--quick` is a check of the cheapest rows."""
    flags = {argument for argument in arguments if argument in known}
    rest = [argument for argument in arguments if argument not in known]
    if unknown := [argument for argument in rest if argument.startswith("--") and argument != "--traces"]:
        sys.exit(f"error: unknown option {unknown[0]}; known: {', '.join(known)}")
    return flags, rest

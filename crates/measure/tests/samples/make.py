"""Writes pyvcd.vcd with pyvcd (pip install pyvcd); sigrok-cli makes the others of it, as README.md says."""
from vcd import VCDWriter

with open("pyvcd.vcd", "w") as to, VCDWriter(to, timescale="1 us", date="", comment="three dies, three lows each") as writer:
    lines = [writer.register_var("probe", f"rb{die}", "wire", size=1, init=1) for die in range(3)]
    for low in range(3):
        start = 10 + 1000 * low
        for die, line in enumerate(lines):
            writer.change(line, start + 10 * die, 0)
        for die, line in enumerate(lines):
            writer.change(line, start + 200 + 50 * die, 1)
    writer.close(4000)

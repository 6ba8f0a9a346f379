"""Takes parts of a failing system away, as long as it fails with the same finding."""

import time

import hosts


def shrink(system, finding, repeat, seconds, tries):
    """A smaller system with a finding of the same signature; `repeat` runs a system and returns its finding."""
    until = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for smaller in candidates(system):
            if time.monotonic() > until or tries <= 0:
                return system, finding
            tries -= 1
            again = repeat(smaller)
            if again is not None and again.signature == finding.signature:
                system, finding, progress = smaller, again, True
                break
    return system, finding


def candidates(system):
    """Systems with less than this one has, the largest cuts first."""
    yield from fewer_parts(system)
    yield from system.smaller()
    yield from shorter_workloads(system)
    yield from smaller_trees(system)
    yield from fewer_keys(system)


def fewer_parts(system):
    if len(system.devices) > 1:
        smaller = system.copy()
        del smaller.devices[1:], smaller.drives["other.toml"]
        yield smaller
    if system.tree and not system.commands:
        smaller = system.copy()
        smaller.tree = None
        yield smaller
    if system.sets:
        smaller = system.copy()
        smaller.sets = []
        yield smaller
    for option in system.options:
        # Offsets beyond the end would be another fault.
        if option != "--wrap":
            smaller = system.copy()
            del smaller.options[option]
            yield smaller


def shorter_workloads(system):
    for name in ("workload", "beside"):
        workload = getattr(system, name)
        if not workload:
            continue
        if len(workload.get("jobs", ())) > 1:
            for number in range(len(workload["jobs"])):
                smaller = system.copy()
                del getattr(smaller, name)["jobs"][number]
                yield smaller
        lines = workload.get("lines", ())
        length = len(lines) // 2
        while length:
            for start in range(0, len(lines), length):
                if len(lines) > 8 * length and start >= 8 * length and length < 4:
                    break
                smaller = system.copy()
                del getattr(smaller, name)["lines"][start:start + length]
                if getattr(smaller, name)["lines"]:
                    yield smaller
            length //= 2
        for number, job in enumerate(workload.get("jobs", ())):
            for key, value in job.items():
                if key == "number_ios" and value > 1:
                    smaller = system.copy()
                    getattr(smaller, name)["jobs"][number][key] = value // 2
                    yield smaller
                elif key not in ("rw", "number_ios", "zonemode"):
                    smaller = system.copy()
                    del getattr(smaller, name)["jobs"][number][key]
                    yield smaller
    if system.torture.get("--ops", 1) > 10:
        smaller = system.copy()
        smaller.torture["--ops"] //= 2
        yield smaller


def smaller_trees(system):
    if not system.tree:
        return
    for place, node in enumerate(hosts.nodes(system.tree)):
        for number in range(len(node.get("below") or ())):
            for action in ("lift", "leave out"):
                smaller = system.copy()
                twin = list(hosts.nodes(smaller.tree))[place]
                below = twin["below"][number]
                if action == "leave out":
                    del twin["below"][number]
                elif "keys" in below:
                    twin.clear()
                    twin.update(below)
                else:
                    continue
                yield smaller


def fewer_keys(system):
    for file, keys in system.drives.items():
        optional = [name for name in keys if not system.required(name) and not name.startswith("capacity.")]
        sections = sorted({name.rpartition(".")[0] for name in optional})
        whole_sections = [[name for name in optional if name.startswith(f"{section}.")] for section in sections if section]
        for cut in [*whole_sections, *([name] for name in optional)]:
            smaller = system.copy()
            for name in cut:
                del smaller.drives[file][name]
            smaller.sets = [name for name in smaller.sets if name in smaller.drives["drive.toml"]]
            yield smaller
    for place, node in enumerate(hosts.nodes(system.tree) if system.tree else ()):
        for key in node.get("keys", ()):
            if key != "kind":
                smaller = system.copy()
                del list(hosts.nodes(smaller.tree))[place]["keys"][key]
                yield smaller

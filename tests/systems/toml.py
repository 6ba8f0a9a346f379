"""Descriptions as TOML, from plain values."""

import json


def toml(value):
    """A value, tables and lists in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }" if value else "{}"
    raise TypeError(f"{value!r} has no form in TOML")


def description(keys):
    """A drive's description from values by dotted key."""
    sections = {}
    for name, value in keys.items():
        section, _, leaf = name.rpartition(".")
        sections.setdefault(section, []).append(f"{leaf} = {toml(value)}\n")
    return "\n".join(
        (f"[{section}]\n" if section else "") + "".join(lines) for section, lines in sorted(sections.items())
    )

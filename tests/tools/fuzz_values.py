"""List values, names and pieces of text that no scenario should hold, and numbers that are too large to try."""

import math
from typing import Any

FAR = (
    *(0, -1, -0.0, 1e-300, 5e-324, 1e-9, 1e9, 1e15, 1e300, 1.7e308),
    *(math.inf, -math.inf, math.nan, 2**31, 2**63, 10**40),
)
STRANGE: tuple[Any, ...] = (
    *(None, True, False, "", "abc", "1", "1e5", "on", "[/x]", "x" * 5000),
    *("a\x00b", "ü\u2028", "../..", "/dev/zero"),
    *([], {}, [1], [None], [[]], {"a": 1}, {"name": 1}, {"name": None}, {"name": []}, list(range(2000))),
    *(10**400, -(10**400), b"\x00\xff", {str(i): i for i in range(500)}, [{"name": "umi"}]),
)
NAMES = (
    *("", ".", ":", "a:", ":b", "..:x", ".a:b", "a:b:c", "json:JSONDecoder", "json:nothing"),
    *("no.such.module:X", "umii", "_legs", "__init__", "FedAvg", "fedavg ", "fed\x00avg", "x" * 3000),
    *("edgefl.scenario.scenario:Scenario", "os:system"),
)
PIECES = (
    *("\t", "\n", "\r", "\x00", "\x07", "\x85", "\ufeff", "\u2028", "🦆"),
    *("'", '"', "{", "}", "[", "]", ": ", "- ", "? ", ", ", "#", "&a ", "*a ", "<<: ", "<<: *a\n"),
    *("!!int ", "!!binary ", "!!python/object:os.system ", "!x ", "|\n", ">\n", "---\n", "...\n"),
    *("%YAML 9.9\n", "%TAG ! x\n", "@", "`", "2020-13-45", "0x", "0o8", "1_0", "9" * 5000, ".inf", "~"),
    *("[" * 400, "{a: " * 300, "- " * 500, "? ? ? ", "a: &a [*a]\n", "1:30", "1e999", "-"),
)
ALIAS_BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 28))
SLOW = {
    ("devices", "count"): 5000,
    ("devices", "density_per_km2"): 2e4,
    ("learning", "dataset", "groups"): 500,
}

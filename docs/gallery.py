"""Draw every shipped scenario into docs/gallery/, and write docs/gallery.md and a page per topic: `make gallery`.

python docs/gallery.py [NAME ...]   draws only these scenarios; the pages always show all scenarios. `riverside` names
the pictures of the lesson in docs/authoring.md, one after each of its steps.
"""

import json
import math
import re
import sys
from pathlib import Path

import yaml

from edgefl.commands.preview_data import Preview, make_preview
from edgefl.commands.preview_picture import draw
from edgefl.engine.settings import WorkloadSettings
from edgefl.errors import EdgeflError
from edgefl.run.progress import three_digits
from edgefl.scenario.scenario import Scenario, load

HERE = Path(__file__).parent
SCENARIOS = HERE.parent / "scenarios"
FACTS = HERE / "gallery" / "facts.json"  # figures of all scenarios, for runs that draw only one
DPI = 84
HEAD = """\
# Gallery

These are all scenarios that come with edgefl, as `edgefl preview` draws them before a run. On the left is the map
with the signal strength, devices at the start (dots), their tracks (lines) and handovers (crosses). On the right is
the number of devices by strongest cell or, if this number never changes, the quality of their links; below are the
labels that devices hold. Click a picture for a description and the command that runs the scenario.
"""
LESSON = re.compile(r'title="riverside.yaml"\n(.*?)^```.*?--out (\S+)$', re.DOTALL | re.MULTILINE)
COLUMNS = 3  # pictures per row on the first page
TOPICS = {
    "First scenarios": ["quickstart", "handover_hexagonal", "city_day"],
    "Movement": ["mobility_"],
    "Places": ["commute_clock", "stadium_egress", "manhattan_trace", "walk_among_sites", "labels_by_zone"],
    "Availability": [
        *("churn_", "battery", "client_pattern", "standing_populations", "membership_random_waypoint"),
        *("adaptive_sessions", "sensors_at_night"),
    ],
    "Radio and devices": [
        "device_classes",
        "sync_or_async",
        "hierarchy",
        "two_federations",
        "two_tasks",
        "compress_and_choose",
        "schedulers_tdd",
        "background_traffic",
        "measured_links",
        "testbed_5g_lena",
        "raspberry_pis",
        "convolutions",
    ],
    "Concept drift": ["drift_", "flash_"],
    "The papers' settings": ["journal_", "shakespeare"],
    "More": [""],
}  # topic -> names, or prefixes of names


def main(names: list[str]) -> None:
    """Draw the scenarios with these names, or all scenarios, and write the pages."""
    facts = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    files = sorted(SCENARIOS.glob("*.yaml"))
    for file in files:
        if names and file.stem not in names:
            continue
        print(file.stem, flush=True)
        scenario = load(file)
        try:
            preview, known = drawn(scenario), True
        except EdgeflError:  # the data set is not on this machine
            preview, known = drawn(without_data(scenario)), False
        draw(preview, HERE / "gallery" / f"{file.stem}.webp", dpi=DPI)
        facts[file.stem] = (
            measured(preview) if known else "The data set was not installed when the picture was drawn."
        )
        FACTS.write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    for step, picture in LESSON.findall((HERE / "authoring.md").read_text()):
        if not names or "riverside" in names:
            print(picture, flush=True)
            draw(drawn(load(yaml.safe_load(step))), HERE / picture, dpi=110)
    topics = by_topic(files)
    (HERE / "gallery.md").write_text(first_page(topics))
    for topic, mine in topics.items():
        (HERE / page_of(topic)).write_text(page(topic, mine, facts))


def drawn(scenario: Scenario) -> Preview:
    """Preview a scenario and compute its rounds in full, so that no figure depends on the machine."""
    return make_preview(scenario, most_s=math.inf)


def by_topic(files: list[Path]) -> dict[str, list[Path]]:
    """Return the scenarios of each topic, without empty topics."""
    topics, left = {}, list(files)
    for topic, beginnings in TOPICS.items():
        mine = [file for start in beginnings for file in left if file.stem.startswith(start)]
        left = [file for file in left if file not in mine]
        if mine:
            topics[topic] = mine
    return topics


def page_of(topic: str) -> str:
    """Return the file name of a topic's page."""
    words = re.sub("[^a-z]+", "-", topic.lower().replace("'", ""))
    return f"gallery-{words}.md"


def first_page(topics: dict[str, list[Path]]) -> str:
    """Return the text of the page that shows all scenarios."""
    parts = [HEAD]
    for topic, files in topics.items():
        parts += [f"## {topic}\n", "| | | |\n|---|---|---|"]
        for begin in range(0, len(files), COLUMNS):
            row = [
                f"[![{name}: its map, population and labels](gallery/{name}.webp)]({page_of(topic)}#{name})<br>{name}"
                for name in (file.stem for file in files[begin : begin + COLUMNS])
            ]
            parts.append("| " + " | ".join([*row, *[""] * (COLUMNS - len(row))]) + " |")
        parts.append("")
    return "\n".join(parts)


def page(topic: str, files: list[Path], facts: dict[str, str]) -> str:
    """Return the text of a topic's page."""
    how = "Each picture shows the scenario before a run; the [gallery](gallery.md) explains how to read it.\n"
    parts = [f"# {topic}\n", how]
    for file in files:
        words = " ".join([*sentences(file.read_text())[:2], facts[file.stem]])
        picture = f"![{file.stem}: its map, population and labels](gallery/{file.stem}.webp)"
        parts.append(f"## {file.stem}\n\n{words}\n\n`edgefl run {file.stem}`\n\n{picture}\n")
    return "\n".join(parts)


def sentences(text: str) -> list[str]:
    """Return the sentences of the comment at the top of a scenario file."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not re.match(r"# *(yaml-language-server:|\$schema)", line):
            lines.append(line.lstrip("# "))
    return [found.strip() for found in re.findall(r".+?(?<!et al)[.!?](?=\s|$)", " ".join(lines))]


def measured(preview: Preview) -> str:
    """Return a sentence that states a preview's time, energy and handovers."""
    moves = ""
    whole = preview.walked_s >= preview.times_s[-1]  # otherwise the count of handovers is partial
    if preview.world.scenario.layout.several and len(preview.handovers_m) and whole:
        rate = preview.handovers_per_hour / preview.forecast.devices
        moves = f", and each device hands over {rate:,.{0 if rate >= 10 else 1}f} times an hour"
        if preview.borders:
            moves += (
                f", {len(preview.handovers_m) / preview.borders:.1f} times for each border that it crosses"
            )
    probe = preview.forecast.probe
    costs = [
        f"the first rounds{f' of {name}' if name else ''} take {three_digits(one.latency_s)} s and"
        f" {one.energy} J each"
        for name, one in (probe.by_federation or {"": probe}).items()
    ]
    return f"With {preview.forecast.devices} devices, {', and '.join(costs)}{moves}."


def without_data(scenario: Scenario) -> Scenario:
    """Return a scenario of the same world without learning."""
    task = WorkloadSettings(payload_bits=1_000_000, flops_per_sample=1e6)
    own = {
        name: one.model_copy(update={"learning": None, "workload": task})
        for name, one in (scenario.federations or {}).items()
    }
    changes = {"federations": own} if own else {"learning": None, "workload": task}
    return scenario.model_copy(update=changes)


if __name__ == "__main__":
    main(sys.argv[1:])

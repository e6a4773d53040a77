"""Test that each typical mistake of an author causes one message that names the line and the remedy."""
# ruff: noqa: E501 - a row is a line

from pathlib import Path

import pytest

from edgefl.scenario.data_loading import Loaded
from edgefl.studies.validation import check
from tests.refusals import refused_at

RIGHT = """\
name: mine
seed: 1
devices:
  count: 4
sessions: {name: schedule, count: 2, rounds: 2}
radio:
  bandwidth_hz: 20.0e+6
learning:
  dataset: digits
  model: logistic
  algorithm: {name: fedprox, mu: 0.1}
"""
# mistake | text (ALL: all of it) | replacement | line | words of the message
MISTAKES = r"""
wrong indent |   count: 4\n |    count: 4\n  populations: 2\n | 5 | this line is indented by 2 spaces, line 4 by 3
not indented |   count: 4\n | count: 4\n | 3 | devices: must be a mapping of keys to values, got null: are the lines
tab |   count: 4\n | \tcount: 4\n | 4 | a tab, which YAML does not allow here; use spaces
no blank after a colon | name: mine | name:mine | 1 | a key needs a colon and a space after it
two colons | name: mine | name: my: run | 1 | or name: 'my: run' if it is text
a section on one line | devices:\n  count: 4\n | devices: count: 4\n | 3 | write devices: {count: 4} if keys are nested
open bracket | rounds: 2} | rounds: 2 | 5 | the { opened in this line is not closed
no colon in braces | {name: fedprox, mu: 0.1} | {name: fedprox, mu 0.1} | 11 | algorithm.mu 0.1: unknown key; a key needs a colon and a space after it: write 'mu: 0.1'
no blank in braces | {name: fedprox, mu: 0.1} | {name: fedprox, mu:0.1} | 11 | algorithm.mu:0.1: unknown key; a key needs a colon and a space after it: write 'mu: 0.1'
duplicate key |   count: 4\n |   count: 4\n  count: 5\n | 5 | 'count' is given twice, first on line 4
empty file | ALL |  | 1 | is empty; a mapping of keys to values is expected
a list | ALL | - a\n | 1 | a mapping of keys to values is expected
unknown key | bandwidth_hz | bandwith_hz | 7 | radio.bandwith_hz: unknown key: did you mean 'bandwidth_hz'?
unknown section | radio: | radoi: | 6 | radoi: unknown key: did you mean 'radio'?
a key of another section | seed: 1 | bandwidth_hz: 1.0e+6 | 2 | unknown key here; write radio.bandwidth_hz
a name for a section | radio: | layout: {name: hexagonal}\nradio: | 6 | layout.name: unknown key; known: antenna_gain_dbi, 
a key of a component |   model: logistic\n |   model: logistic\n  mu: 0.1\n | 11 | learning.mu: unknown key here; it belongs to learning.algorithm (ditto, fedprox, moon)
a component for a key | algorithm: {name: fedprox, mu: 0.1} | fedprox: {mu: 0.1} | 11 | learning.fedprox: unknown key here; write learning.algorithm: {name: fedprox, ...}
a component's name for a key | {name: fedprox, mu: 0.1} | {FedProx: {mu: 0.1}} | 11 | unknown key of fedavg, the default if no name is given: did you mean {name: fedprox, ...}?
a policy's name for a key | {name: schedule, count: 2, rounds: 2} | {Schedule: {rounds: 2}} | 5 | write a name or {name: ..., parameters}: did you mean {name: schedule, ...}?
a component for a section | radio: | FedProx: {mu: 0.1}\nradio: | 6 | FedProx: unknown key here; write learning.algorithm: {name: fedprox, ...}
a key of devices |   model: logistic\n |   model: logistic\n  clock_hz: 1.0e+9\n | 11 | learning.clock_hz: unknown key here; write devices.clock_hz
a shape without a name | radio: | areas: {geojson: {path: town.geojson}}\nradio: | 6 | areas.geojson.path: unknown key; a name is missing: write areas: {NAME: {geojson: ...}}
a file for a shape | radio: | areas:\n  geojson: town.geojson\nradio: | 7 | areas.geojson: must be a mapping of keys to values, got 'town.geojson'; a name is missing: write areas: {NAME:
a class without a name |   count: 4\n |   count: 4\n  classes: {share: 0.5}\n | 5 | devices.classes.share: must be a mapping of keys to values, got 0.5; a name is missing: write
megahertz | 20.0e+6 | 20 | 7 | must be >= 100000, got 20: 20 MHz is 20.0e+6
gigahertz | 20.0e+6 | 20.0e+6\n  carrier_hz: 3.5 | 8 | got 3.5: 3.5 GHz is 3.5e+9
milliseconds | radio: | handover: {time_to_trigger_s: 1280}\nradio: | 6 | must be <= 5.12, got 1280: 1280 ms is 1.28
microseconds | 20.0e+6 | 20.0e+6\n  slot_s: 500 | 8 | must be <= 0.01, got 500: 500 us is 0.0005
no slot in minutes | 20.0e+6 | 20.0e+6\n  slot_s: 8.0e-6 | 8 | must be >= 0.00001, got 8e-06 (slot length
no round in minutes | radio: | rounds: {every_s: 0.0005}\nradio: | 6 | must be >= 0.001, got 0.0005 (a round
kilometres | radio: | layout: {rings: 1, isd_m: 0.5123456}\nradio: | 6 | must be >= 20, got 0.5123456: 0.512346 km is 512.3
a number with its unit | 20.0e+6 | 20 MHz | 7 | got '20 MHz': write 20.0e+6, without the unit
another unit in the key | bandwidth_hz: 20.0e+6 | bandwidth_mhz: 20 | 7 | did you mean 'bandwidth_hz'?
a key with dots | radio: | rounds.every_s: 20\nradio: | 6 | unknown key; write the sections one inside the other: rounds: {every_s: 20}
dots within a section | radio: | rounds: {selector.name: fedcs}\nradio: | 6 | one inside the other: selector: {name: fedcs}
three keys with dots | radio: | handover.policy.name: a3\nradio: | 6 | handover: {policy: {name: a3}}
dots of no section | radio: | nothing.here: 3\nradio: | 6 | nothing.here: unknown key; known: areas
percent |   count: 4\n |   count: 4\n  indoor_share: 80\n | 5 | it is a share, so write 0.8 for 80 %
watts for dBm | 20.0e+6 | 20.0e+6\n  budget: {server_power_dbm: 2000} | 8 | must be <= 70, got 2000 (downlink power
typo in a component | logistic | logistik | 10 | no model 'logistik': did you mean 'logistic'?
hyphen for underscore | digits | fashion-mnist | 9 | did you mean 'fashion_mnist'?
a codec for an algorithm | fedprox | SignSGD | 11 | no algorithm 'SignSGD', a name of codecs: `edgefl describe codecs/signsgd` shows where it belongs
capitals | fedprox | FedProx | 11 | no algorithm 'FedProx': did you mean 'fedprox'?
a hyphen too many | fedprox | Fed-Prox | 11 | no algorithm 'Fed-Prox': did you mean 'fedprox'?
capitals for a key | bandwidth_hz | BandwidthHz | 7 | radio.BandwidthHz: unknown key: did you mean 'bandwidth_hz'?
parameter of another | mu: 0.1 | beta: 0.1 | 11 | learning.algorithm.beta: unknown key; known: mu
parameter without its component | {name: fedprox, mu: 0.1} | {mu: 0.1} | 11 | learning.algorithm.mu: unknown key of fedavg, the default if no name is given: write {name: ..., mu:
decimal comma | mu: 0.1 | mu: 0,1 | 11 | if the comma before it is a decimal comma, write a point
one letter short | rounds: 2} | round: 2} | 5 | sessions.round: unknown key: did you mean 'rounds'?
slash in a name | name: mine | name: a/b | 1 | got 'a/b': use only a-z, A-Z, 0-9, . _ -, beginning with a letter or digit
an umlaut in a name | name: mine | name: Größe | 1 | got 'Größe': use only a-z, A-Z, 0-9, . _ -, beginning with a letter or digit
a name that looks like a number with a unit | name: mine | name: 7 up | 1 | got '7 up': use only a-z, A-Z, 0-9, . _ -, beginning with a letter or digit
an umlaut in a class |   count: 4\n |   count: 4\n  classes: {Größe: {share: 1}}\n | 5 | got 'Größe': use only a-z or A-Z, then a-z, A-Z, 0-9, _ and -
no hour in an itinerary |   count: 4\n |   count: 4\n  mobility: {name: itinerary, addresses: {work: [9, 9]}, plan: [{leave: '8:75', to: work}]}\n | 5 | plan.0.leave: must be an hour, such as 8.5 or "8:30", got '8:75'
no hour of a day | {name: schedule, count: 2, rounds: 2} | {name: daily, at_hours: [25]} | 5 | sessions.at_hours.0: must be < 24, got 25
no hours at all | {name: schedule, count: 2, rounds: 2} | {name: daily, at_hours: []} | 5 | sessions.at_hours: must have at least 1 item, not 0
count and density |   count: 4\n |   count: 4\n  density_per_km2: 5\n | 3 | density_per_km2, not both
parameter forgotten | sessions: {name: schedule, count: 2, rounds: 2}\n | sessions: schedule\n | 5 | sessions.rounds: is missing; add it (T: rounds per session)
section forgotten | sessions: {name: schedule, count: 2, rounds: 2}\n |  | 1 | sessions: is missing; add it
reversed range |   count: 4\n |   count: 4\n  mobility: {name: random_waypoint, speed_min_m_s: 5, speed_max_m_s: 1}\n | 5 | speed_min_m_s 5.0 must not exceed speed_max_m_s 1.0
negative | count: 4 | count: -4 | 4 | must be >= 1, got -4 (number of devices
fraction | count: 4 | count: 4.5 | 4 | must be a whole number, got 4.5
text for a number | count: 4 | count: four | 4 | must be a whole number or 'all', got 'four'
number in quotes | count: 4 | count: '4' | 4 | got '4': write it without quotes
yes for true | mu: 0.1}\n | mu: 0.1}\n  local: {one_pass: yes}\n | 12 | must be true or false, got 'yes'
missing trace |   count: 4\n |   count: 4\n  mobility: {name: trace, path: nowhere.csv}\n | 5 | nowhere.csv: no such file in 
missing data | digits | {name: npz, path: nowhere.npz} | 9 | nowhere.npz does not exist (looked in the scenario's folder and in
absent class |   count: 4\n |   count: 4\n  classes: {phone: {share: 0.5}}\n | 3 | the classes' shares sum to 0.5: make the sum 1
absent area |   count: 4\n |   count: 4\n  mobility: {name: attraction, homes: town}\n | 5 | no area 'town': define it below areas:
absent device |   count: 4\n |   count: 4\n  churn: {name: client_pattern, sessions: [[0, 9]]}\n | 5 | session 1 names device 9, but there are 4 devices, 0 to 3
too many participants | sessions: {name: schedule, count: 2, rounds: 2}\n | sessions: {name: schedule, count: 2, rounds: 2}\nrounds: {selector: {name: uniform, count: 9}}\n | 6 | 9 exceeds devices.count 4
a file, not a path |   count: 4\n |   count: 4\n  mobility: {name: trace, path: x.csv, file: x.csv}\n | 5 | devices.mobility.file: unknown key; edgefl calls it path
a key of Flower |   count: 4\n |   count: 4\nrounds: {clients_per_round: 4}\n | 5 | rounds.clients_per_round: unknown key; edgefl calls it rounds.selector.count
the number of rounds |   count: 4\n |   count: 4\nrounds: {count: 4}\n | 5 | rounds.count: unknown key; edgefl calls it sessions.rounds
a key in American |   model: logistic\n |   model: logistic\n  optimizer: adam\n | 11 | learning.optimizer: unknown key; edgefl calls it learning.local.optimiser
a key with more words |   model: logistic\n |   model: logistic\n  privacy: {clip_norm: 1, noise_multiplier: 1}\n | 11 | privacy.noise_multiplier: unknown key: did you mean 'noise'?
a selector of Flower |   count: 4\n |   count: 4\nrounds: {selector: random}\n | 5 | no selector 'random': did you mean 'uniform'?
a target |   count: 4\n |   count: 4\ntarget: 0.9\n | 5 | target: unknown key; edgefl calls it stop.accuracy
two tasks | sessions: {name: schedule, count: 2, rounds: 2}\n | sessions: {name: schedule, count: 2, rounds: 2}\nworkload: {payload_bits: 1, flops_per_sample: 1}\n | 6 | set either learning
handover without places | radio:\n | layout: {rings: 1}\nradio:\n  preset: journal\n | 7 | need radio.propagation.shadowing: spatial
"""


@pytest.mark.parametrize("row", MISTAKES.strip().splitlines(), ids=lambda row: row.partition(" | ")[0])
def test_a_mistake_is_one_message_with_line_and_remedy(row: str, tmp_path: Path) -> None:
    _, wrong, instead, line, said = row.split(" | ")
    wrong, instead = (
        text.replace("\\n", "\n").replace("\\t", "\t").replace("ALL", RIGHT) for text in (wrong, instead)
    )
    assert RIGHT.count(wrong) == 1
    file = tmp_path / "mine.yaml"
    file.write_text(RIGHT.replace(wrong, instead))
    with refused_at("", f"{file}:{line}", said) as refusal:
        check(file, "cpu", Loaded(download=False))
    assert "\n" not in str(refusal.value), "one message"


def test_without_a_mistake_nothing_is_said(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RIGHT)
    (found,) = check(file, "cpu", Loaded(download=False))
    assert found.notes == ()


def test_a_commute_that_never_commutes_is_noted(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RIGHT.replace("count: 4\n", "count: 4\n  mobility: {name: attraction, begin_hour: 7}\n"))
    (found,) = check(file, "cpu", Loaded(download=False))
    assert any("before any device sets out; set rounds.every_s" in note for note in found.notes)

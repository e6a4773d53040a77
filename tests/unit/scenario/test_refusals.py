"""Test that each invalid scenario causes an error at its key, before any file is written."""
# ruff: noqa: E501 - a row is a line

from pathlib import Path

import pytest
import yaml

from edgefl.run.plan import prepare
from edgefl.scenario.scenario import load
from tests.refusals import refused_at

BASE = """\
name: base
devices: {count: 6}
sessions: {name: schedule, count: 2, rounds: 2}
areas: {mill: {disc: {centre_m: [0, 0], radius_m: 9}}, campus: {disc: {centre_m: [50, 0], radius_m: 9}}}
"""
WORKLOAD = "workload: {payload_bits: 100000, flops_per_sample: 1000}\n"
LEARNING = "learning: {dataset: digits, model: logistic}\n"
SHORT = {
    "COMMUTE": "devices.mobility={name: itinerary, addresses: {work: [300, 400]}, plan: [TO_WORK]}; devices.mobility",
    "ATTRACTION": "devices.mobility={name: attraction}; devices.mobility",
    "TWO": "devices.classes={a: {count: 2}, rest: {}}; devices.classes",
    "FEDBUFF": "radio.sharing=dynamic; rounds.server=fedbuff; rounds.server.buffer",
    "TO_WORK": "{leave: '8:00', to: work}",
}

# key | words that the message must contain | overrides
OF_NETWORKS = """
devices.coutn | count | devices.coutn=4
devices.count | >= 1 | devices.count=0
devices.count | 1000000 | devices.count=200000000
devices | density_per_km2 | devices={}
devices | set one of them to null | devices={count: 4, density_per_km2: 3}
sessions.rounds | missing | sessions={name: schedule, count: 2}
sessions | schedule | sessions=schedul
sessions.count | 1000000 | sessions.count=1000000000
sessions.rounds | 1000000 | sessions.rounds=1000000000
sessions | duration_s | sessions={name: schedule, rounds: 2}
sessions | max_rounds | sessions={name: membership, count: 1, min_rounds: 5, max_rounds: 4}
sessions | at_hours | sessions={name: daily, count: 1, at_hours: [17, 8]}
sessions.at_hours.1 | 24 | sessions={name: daily, count: 1, at_hours: [8, 24]}
devices.mobility | begin_hour | sessions={name: daily, count: 1, at_hours: [8], begin_hour: 7}; ATTRACTION={name: attraction, begin_hour: 6, day_s: 86400}
rounds.deadline_s | 0.000001 | rounds.deadline_s=1e-300
rounds.min_updates | 7 exceeds the number of participants | rounds.min_updates=7
rounds.min_updates | 3 exceeds the number of participants | rounds.selector={name: uniform, count: 2}; rounds.min_updates=3
rounds.min_updates | 2 exceeds the number of participants | devices.churn={name: client_pattern, sessions: [[0, 1], [2]]}; rounds.min_updates=2
federations | must have at least 2 items, not 1, got | federations={x: {weight: 1}}
rounds.selector.count | 7 exceeds devices.count 6 | rounds.selector={name: uniform, count: 7}
rounds.selector.count | 400 | devices={density_per_km2: 20}; rounds.selector={name: uniform, count: 400}
rounds.selector.count | 4 exceeds devices.count 6 / 2 populations | devices.populations=2; rounds.selector={name: uniform, count: 4}
rounds.server.buffer | 7 exceeds the number of devices, 6 | FEDBUFF=7
rounds.server.concurrency | 7 exceeds | FEDBUFF=4; rounds.server.concurrency=7
rounds.server.concurrency | rounds.selector.count already sets | FEDBUFF=4; rounds.server.concurrency=5; rounds.selector={name: uniform, count: 2}
rounds.min_updates | 5 exceeds rounds.server.buffer 4 | FEDBUFF=4; rounds.min_updates=5
rounds.over_selection | all | rounds.over_selection=2
rounds | unbiased: false | rounds.selector={name: uniform, count: 3}; rounds.over_selection=2; rounds.server.unbiased=true
rounds.over_selection | uniform | rounds.selector={name: uniform, count: 6}; rounds.over_selection=2
devices.churn.on_s | 0.001 | devices.churn={name: duty_cycle, on_s: 1e-300}
devices.churn.off_s | 1000000000 | devices.churn={name: poisson, off_s: 1e300}
devices.churn.sessions.0.0 | >= 0 | devices.churn={name: client_pattern, sessions: [[-1]]}
devices.churn | session 1 | devices.churn={name: client_pattern, sessions: [[]]}
devices.churn | session 1 | devices.churn={name: client_pattern, sessions: [[1, 1]]}
devices.churn.sessions.1 | device 6 | devices.churn={name: client_pattern, sessions: [[0], [1, 6]]}
devices | 7 populations | devices.populations=7
devices.flops_per_cycle | 0.001 | devices.flops_per_cycle=1e-300
devices | circuit_power_w | devices.power=phone_5g; devices.circuit_power_w=0.2
devices | pa_efficiency | devices.power=phone_5g; TWO.a.pa_efficiency=0.4
devices | uplink_circuit_power_w | devices.power=journal; TWO.a.power=tr38840; devices.classes.a.uplink_circuit_power_w=0.2
devices | 0.9 | devices.classes={a: {share: 0.5}, b: {share: 0.4}}
devices | b | devices.classes={a: {share: 1.0}, b: {}}
devices | 1.4 | devices.classes={a: {share: 0.7}, b: {share: 0.7}}
devices | 7 | devices.classes={a: {count: 3}, b: {count: 4}}
devices | b | devices.classes={a: {count: 6}, b: {}}
devices | count for all | devices.classes={a: {count: 3}, b: {share: 0.7}}
devices | a and b | devices.classes={a: {}, b: {}}
devices | class a | devices.classes={a: {share: 0.01}, b: {}}
devices.classes.a | either share or count | devices.classes={a: {share: 0.1, count: 1}, b: {}}
devices.classes.7 up | a-z or A-Z | devices.classes={7 up: {}}
devices.classes | 1 item | devices.classes={}
devices | the classes' shares | devices={density_per_km2: 100, classes: {a: {count: 3}, b: {}}}
devices | devices.count is not a number | devices={count: all, mobility: {name: trace, path: a.csv}, classes: {a: {count: 3}, b: {}}}
devices.classes.a.ut_height_m | 13 | TWO.a.ut_height_m=22; radio.path_loss=uma
devices.classes.a.indoor_share | 38.901 | TWO.a.indoor_share=0.5; radio.path_loss=inh; cell.radius_m=100
devices.classes.a.samples | share | TWO.a.samples=0.5
devices.classes.a.clock_hz | 1000000 | TWO.a.clock_hz=0
devices.classes.a.clok_hz | clock_hz | TWO.a.clok_hz=1e9
devices.classes.a.battery_j | solar | TWO.a.battery_j=solar
devices.classes.a.mobility.speed_min_m_s | 0 | TWO.a.mobility={name: random_waypoint, speed_min_m_s: 0}
devices.classes.a.mobility.homes | hom | TWO.a.mobility={name: attraction, homes: hom}
devices.mobility | 3.0 | devices.mobility={name: gauss_markov, speed_mean_m_s: 3, speed_std_m_s: 1.01}
devices.mobility.left_probability | 0.25 | devices.mobility={name: manhattan, left_probability: 0.6}
devices.mobility.block_m | 500 m | devices.mobility={name: manhattan, block_m: 500}
devices.mobility | 35 m | devices.mobility=highway; cell.radius_m=30
devices.mobility.path | none.csv | devices.mobility={name: trace, path: none.csv}
devices.mobility.bad_rows | skip | devices.mobility={name: trace, path: a.csv, bad_rows: keep}
devices | trace | devices.count=all
devices | types | devices.classes_by=types
devices.mobility.begin_s | 2026-01-05 | devices.mobility={name: trace, path: a.csv, begin_s: noon}
devices.mobility.columns.late | unknown key: did you mean 'lat' | devices.mobility={name: trace, path: a.csv, columns: {late: 1}}
devices.mobility.columns.east | lon | devices.mobility={name: trace, path: a.csv, columns: {east: 1}}
devices.mobility.kinds | container | devices.mobility={name: trace, path: a.xml, kinds: []}
devices.mobility.rhythm.0 | 0.9 | ATTRACTION.rhythm=[{from_hour: 0, to: {home: 0.9}}]
devices.mobility | from_hour | ATTRACTION.rhythm=[{from_hour: 0, to: {home: 1}}, {from_hour: 0, to: {home: 1}}]
devices.mobility | from_hour | ATTRACTION.rhythm=[{from_hour: 1, to: {home: 1}}]
devices.mobility | [] | ATTRACTION.rhythm=[]
devices.mobility | tue | ATTRACTION.rhythm=[{from_hour: 0, to: {home: 1}}, {from_hour: 3, days: [tue], to: {home: 1}}]
devices.mobility | tue | ATTRACTION.rhythm=[{from_hour: 0, days: [mon], to: {home: 1}}]
devices.mobility.rhythm.0 | days | ATTRACTION.rhythm=[{from_hour: 0, days: [mon, mon], to: {home: 1}}]
devices.mobility.rhythm.0 | days | ATTRACTION.rhythm=[{from_hour: 0, days: [], to: {home: 1}}]
devices.mobility.rhythm.0.day | days | ATTRACTION.rhythm=[{from_hour: 0, day: [mon], to: {home: 1}}]
devices.mobility.rhythm.0.to.hme | home | ATTRACTION.rhythm=[{from_hour: 0, to: {hme: 1}}]
devices.mobility.rhythm.0 | 1.1 | ATTRACTION.rhythm=[{from_hour: 0, to: {home: 0.6, mill: 0.5}}]
devices.mobility | 0.9 | ATTRACTION.homes={mill: 0.4, campus: 0.5}
devices.mobility.homes | mill | ATTRACTION.homes=mil
devices.mobility | stay_s | ATTRACTION.day_s=100
devices.mobility | 0.5 | devices.mobility={name: od_flows, begin: {mill: 0.5}, flows: [{from_hour: 0, trips_per_hour: {}}]}
devices.mobility.plan.0.to | work | COMMUTE.plan=[{leave: '8:00', to: wrok}]
devices.mobility.plan | leave | COMMUTE.plan=[{leave: '17:30', to: home}, TO_WORK]
devices.mobility.plan | 1 | COMMUTE.plan=[]
devices.mobility.plan.0.leave | 25:10 | COMMUTE.plan=[{leave: '25:10', to: work}]
devices.mobility.plan.0.days | weekdays | COMMUTE.plan=[{leave: 8, to: work, days: workdays}]
devices.mobility.plan.0 | once | COMMUTE.plan=[{leave: 8, to: work, days: [mon, mon]}]
devices.mobility.plan.0.share | 1 | COMMUTE.plan=[{leave: 8, to: work, share: 1.5}]
devices.mobility.addresses.work | 0.8 | COMMUTE.addresses.work={mill: 0.4, campus: 0.4}
devices.mobility.addresses.work | mil | COMMUTE.addresses.work=mil
devices.mobility.addresses.work | true | COMMUTE.addresses.work=true
areas.mill | got none | areas.mill={}
areas.mill | disc and polygon | areas.mill.polygon={points_m: [[0, 0], [1, 0], [0, 1]]}
areas.mill.disk | disc | areas.mill={disk: {}}
areas.mill.disc.radius_m | missing | areas.mill={disc: {centre_m: [0, 0]}}
areas.mill.disc.radius_m | 0 | areas.mill.disc.radius_m=0
areas.mill.disc.radios_m | radius_m | areas.mill.disc.radios_m=2
areas.mill.rectangle | from_m | areas.mill={rectangle: {from_m: [1, 0], to_m: [1, 2]}}
areas.mill.polygon | three | areas.mill={polygon: {points_m: [[0, 0], [1, 0]]}}
areas.mill.geojson.path | no.json: no such file | areas.mill={geojson: {path: no.json}}; ATTRACTION.homes=mill
areas.mill.sumo_net.path | no.xml | areas.mill={sumo_net: {path: no.xml}}; ATTRACTION.homes=mill
radio.tdd | write {pattern: DDDSU} | radio.tdd=DDDSU
radio.tdd.patern | did you mean 'pattern' | radio.tdd={patern: DDDSU}
radio.tdd | add a U | radio.tdd={pattern: DDDD}
devices.file | write {path: phones.csv} | devices.file=phones.csv
cell | write {radius_m: 300} | cell=300
devices | write keys, such as {count: 5} | devices=5
layout | write keys, such as {rings: 2} | layout=2
rounds | write sessions: {rounds: 5} | rounds=5
learning | write {algorithm: fedavg, ...} | learning=fedavg
learning | write {dataset: digits, ...} | learning=digits
radio | write {preset: nr} | radio=nr
rounds | write {selector: fedcs} | rounds=fedcs
radio | write {path_loss: uma} | radio=uma
cloud | write keys, such as {every: 5, ...} | cloud=5
cell | min_distance_m | cell={radius_m: 20, min_distance_m: 30}
cell.radius_m | 250 m | radio.path_loss=inh
cell.radius_m | InH | cell.radius_m=200; radio.path_loss=inh
cell.radius_m | the farthest links are 200 m long | cell.radius_m=200; radio.path_loss=inh
cell.bs_height_m | 24 m | cell.bs_height_m=40
cell.bs_height_m | umi | cell.bs_height_m=10; radio.path_loss=uma
cell.ut_height_m | environment | cell.ut_height_m=1
cell.ut_height_m | 13 | cell.ut_height_m=14; radio.path_loss=uma
cell.min_distance_m | 9 m | cell.min_distance_m=9
cell.radius_m | 9 m | cell.radius_m=9
layout | sites | layout={sites: [[0, 0]], rings: 1}
layout.edge | removed | layout={rings: 1, edge: guard_ring}
layout | same place | layout={sites: [[0, 0], [5, 5], [0, 0]]}
layout | sites | layout={sites: []}
layout.sites.0.1 | missing | layout={sites: [[0]]}
layout.sites.0.1 | 50000 | layout={sites: [[0, 1e9]]}
layout | radius_m | layout={radius_m: 300}
layout.sectors | 2 | layout={sectors: 2}
layout.rings | 2 | layout.rings=3
layout | cell 7 | layout={rings: 1, federations: [7]}
layout | federations | layout={rings: 1, federations: [1, 1]}
layout | federations | layout={rings: 1, federations: []}
layout.federations | some | layout={rings: 1, federations: some}
layout.sites | 5,000 m | layout={sites: [[4000, 0]]}
layout | 2 sites | layout={sites: [[0, 0], [9, 0]], azimuth_deg: [[0, 90]]}
layout | hexagons | layout={rings: 1, azimuth_deg: [[0, 90]]}
layout | sectors | layout={sites: [[0, 0]], azimuth_deg: [[0, 90]], sectors: 3}
layout | 8 dBi | layout={sites: [[0, 0]], azimuth_deg: [[0, 90]], antenna_gain_dbi: 5}
layout | 8 dBi | layout={sectors: 3, antenna_gain_dbi: 5}
radio.propagation.shadowing | spatial | layout={sectors: 3}; radio={preset: journal}
radio.propagation.line_of_sight | spatial | radio={preset: journal, propagation: {line_of_sight: soft}}
radio.carrier_hz | 500000000 | radio.carrier_hz=3.5
radio.slot_s | 0.01 | radio.slot_s=0.5
radio.scheduler | fair | radio.scheduler=fair
radio.slot_s | 10 | radio.slot_s=0.01
devices.mobility.doppler_speed_m_s | 140 | devices.mobility={name: static, doppler_speed_m_s: 140}
devices.density_per_km2 | no device | devices={density_per_km2: 1e-9}
radio | shadowing | radio={preset: journal, path_loss: free_space, propagation: {shadowing: spatial, shadowing_std_db: 4}}
radio | does not end | radio={preset: journal, budget: {server_power_dbm: -40, noise_figure_db: 20}}; cell.radius_m=5000
radio | t310_s | radio={preset: journal, link: {rates: cqi}}
radio | a resource block, 720000 Hz | radio={bandwidth_hz: 5e5, slot_s: 0.00025}
federations.a.weight | 0.91 of the band's 10 resource blocks | radio={bandwidth_hz: 4e6}; federations={a: {share: 0.5}, b: {share: 0.5, weight: 10}}
radio.monitoring | t310_s | radio={preset: journal, monitoring: {t311_s: 3}}
radio.monitoring | at least 0.4 | radio={monitoring: {t310_s: 1, t311_s: 0.2}}
radio.link | downlink_layers | radio={preset: journal, link: {downlink_layers: 2}}
radio | coverage_margin_db | radio={preset: journal, monitoring: {coverage_margin_db: 3}}
radio | shadowing | radio={propagation: {shadowing: round}, monitoring: {coverage_margin_db: 3}}
radio | shannon | radio.scheduler=min_max_latency
radio | flat | radio={preset: journal, scheduler: min_max_latency, link: {frequency_taps: 2}}
radio | fidelity | radio={fidelity: renewal, neighbour_load: 0.2}
radio.scheduler.beta | 'x' | radio.scheduler={name: proportional_fair, beta: 'x'}
radio.scheduler.beta | < 1 | radio.scheduler={name: proportional_fair, beta: 1}
radio.scheduler.beta | finite | radio.scheduler={name: proportional_fair, beta: .nan}
radio.scheduler.bta | beta | radio.scheduler={name: proportional_fair, bta: 0.9}
radio.scheduler.beta | no parameters | radio.scheduler={name: max_rate, beta: 1}
radio.scheduler | name | radio.scheduler={name: 3}
radio.path_loss | uma | radio.path_loss=rma
radio.link | lowest rate | radio.link.max_efficiency=0.1
radio | sharing | radio={background: {uplink_load: 0.5}, sharing: static}
radio | or another scheduler | radio.scheduler=round_robin; rounds.selector={name: fedl, count: 3}
radio.sharing | radio.scheduler needs sharing: dynamic: leave one | radio={scheduler: round_robin, sharing: dynamic}; rounds.selector={name: fedl, count: 3}
radio.sharing | the server fedbuff needs sharing: dynamic: leave one | FEDBUFF=3; radio.sharing=dynamic; rounds.selector={name: fedl, count: 3}
radio.sharing | the selector fedl needs sharing: static: leave one | FEDBUFF=3; radio.sharing=static; rounds.selector={name: fedl, count: 3}
radio | a fixed power | radio={preset: journal, background: {uplink_load: 0.5}, sharing: dynamic}
radio.background.uplink_load | 0.99 | radio.background={uplink_load: 0.99}
radio.background.path | missing | radio.background={name: trace}
"""
OF_LEARNING = """
learning.dataset | digits | learning.dataset=digit
learning.algorithm.mu | -1 | learning.algorithm={name: fedprox, mu: -1}
learning.algorithm.mu | 10000000 | learning.algorithm={name: fedprox, mu: 1e308}
learning.algorithm.mu | no parameters | learning.algorithm={name: fedavg, mu: 1}
learning.local.lr | finite | learning.local.lr=.nan
learning.cost.flops_per_sample | -1 | learning.cost.flops_per_sample=-1
learning.cost.flops_per_sample | 1000000000000000000 | learning.cost.flops_per_sample=1e308
learning.cost.flops_per_sample | device | devices.clock_hz=1e6; learning.cost.flops_per_sample=1e15
learning.local.steps | 1000000 | learning.local.steps=1000000000000
learning.local.epochs | 100000 | learning.local.epochs=1000000000
learning.warm_start.scale | 10000000 | learning.warm_start={name: similarity, scale: 1e308}
learning.warm_start.scale | 'big' | learning.warm_start={name: similarity, scale: big}
learning.warm_start.scale | 0 | learning.warm_start={name: similarity, scale: -1}
rounds.min_updates | 4 exceeds the number of participants | learning.warm_start={name: similarity, probe_share: 0.5}; rounds.min_updates=4
learning.partition | natural | learning.partition=natural
learning.partition | 749 | seed=1; learning.partition={name: iid, overlap: 0.0}; devices.count=750
learning.dataset | MNIST | learning.dataset={name: mnist, root: nowhere}
learning.partition | overlap | learning.partition={name: dirichlet, overlap: 0.3}
learning.partition.alpha | > 0 | learning.partition={name: dirichlet, alpha: 0}
learning.partition.min_samples | >= 1 | learning.partition={name: dirichlet, min_samples: 0}
learning.partition.overlap | < 1 | learning.partition={name: dirichlet, overlap: 1}
learning.partition.overlap | >= 0 | learning.partition={name: dirichlet, overlap: -0.1}
learning.partition | labels_per_device 11 | learning.partition={name: label_count, labels_per_device: 11}
learning.partition.exponent | 1.1 | learning.partition={name: power_law, exponent: 1}
learning.partition.sigma | 0 | learning.partition={name: log_normal, sigma: 0}
learning.local.epochs | flash | learning.local.epochs=null; learning.algorithm=flash
learning.algorithm.gamma | learning.local.early_stopping | learning.algorithm={name: flash, gamma: 0.03}
learning | oracle | learning.algorithm=oracle
learning.drift.cells | site 3 | learning.drift={name: label_swap, at: 2, cells: [3]}
learning.evaluation | devices | learning.evaluation.scores_every=2; learning.evaluation.tested_on=labels
learning.evaluation | scores_every (2) | learning.evaluation.scores_every=2; learning.evaluation.tested_on=devices; learning.evaluation.every=3
sessions | validation | sessions={name: early_stopping, count: 1, patience: 2, max_rounds: 9}
sessions | workload | learning=null; workload={payload_bits: 1, flops_per_sample: 1}; sessions={name: adaptive, count: 1}
"""


def rows(table: str) -> list[tuple[str, ...]]:
    for word, meaning in SHORT.items():
        table = table.replace(word, meaning)
    return [tuple(line.split(" | ")) for line in table.strip().splitlines()]


@pytest.mark.parametrize(("place", "noun", "overrides"), rows(OF_NETWORKS))
def test_invalid_networks(place: str, noun: str, overrides: str) -> None:
    with refused_at(place, noun):
        prepare(load(yaml.safe_load(BASE + WORKLOAD), overrides.split("; ")), device="cpu")


@pytest.mark.parametrize(("place", "noun", "overrides"), rows(OF_LEARNING))
def test_invalid_learning(
    place: str, noun: str, overrides: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with refused_at(place, noun):
        prepare(load(yaml.safe_load(BASE + LEARNING), overrides.split("; ")), device="cpu")

"""Test that each row of the table of incompatible settings causes an error at its place, with a valid remedy."""
# ruff: noqa: E501 - a row of the table stays on one line

import re
from typing import Any, ClassVar

import pytest

from edgefl import load_scenario
from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import ServerState, Updates
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.algorithms.fedavgm import FedAvgM
from edgefl.scenario.fits import _Clash
from edgefl.scenario.needs_table import ROWS
from tests.refusals import refused_at
from tests.tables import rows, sections

BASE: dict[str, Any] = sections("""
    name=fits; devices={count: 6}; radio={preset: journal}; sessions={name: schedule, count: 2, rounds: 2}
    learning={dataset: digits, partition: iid, model: logistic, local: {momentum: 0, batch: 16}}
""")
SHORT = {
    "FEDBUFF": "DYNAMIC; rounds.server={name: fedbuff, buffer: 2}",
    "TIERS": "DYNAMIC; rounds.server={name: tiers, count: 2}",
    "SEVERAL": "DYNAMIC; federations={a: {share: 0.5}, b: {share: 0.5}}",
    "CLOUD": "cloud={every: 2, backhaul_bps: 1e6}",
    "THEORY": "learning.theory=1",
    "PRIVATE": "learning.privacy={clip_norm: 1, where: device}",
    "NOISED": "learning.privacy={clip_norm: 1, where: server}",
    "NUMBA": "learning.kernels=numba",
    "METRICS": "learning.evaluation.metrics=[auc]",
    "FEDL": "rounds.selector={name: fedl, count: 2}",
    "MEASURED": "radio={measured: {path: scenarios/traces/measured_links.csv}}",
    "STATIC": "radio.sharing=static",
    "DYNAMIC": "radio.sharing=dynamic",
    "ALGORITHM": "learning.algorithm",
    "OPTIMISER": "learning.local.optimiser",
}
# code of the row | place | settings | incompatible settings | remedy
CASES = rows(
    """
band_alone | cloud | SEVERAL | CLOUD | cloud=null
band_alone | radio.background | SEVERAL; radio.budget.power_over_share=per_resource_block | radio.background={name: load, uplink_load: 0.3, file_bits: 4000} | radio.background=null
band_alone | record.energy_excess | SEVERAL | record.energy_excess=true | record.energy_excess=false
band_alone | rounds.selector | SEVERAL | FEDL | rounds.selector=all
band_alone | federations.b.rounds.selector | SEVERAL | federations.b.rounds={selector: {name: fedcs, deadline_s: 1}} | federations.b.rounds=null
dynamic_shares | radio.sharing | FEDBUFF | STATIC | DYNAMIC
dynamic_shares | radio.sharing | SEVERAL | STATIC | DYNAMIC
unicast | radio.downlink | FEDBUFF | radio.downlink=broadcast | radio.downlink=unicast
unicast | radio.downlink | SEVERAL | radio.downlink=broadcast | radio.downlink=unicast
unicast | radio.downlink | learning.downlink_codec=qsgd | radio.downlink=broadcast | radio.downlink=unicast
one_by_one | rounds.deadline_s | FEDBUFF | rounds.deadline_s=3 | rounds.deadline_s=null
one_by_one | rounds.every_s | FEDBUFF | rounds.every_s=3 | rounds.every_s=null
one_by_one | rounds.pause_s | FEDBUFF | rounds.pause_s=3 | rounds.pause_s=0
places | rounds.selector | FEDBUFF | rounds.selector={name: fedcs, deadline_s: 1} | rounds.selector=all
whole_tiers | rounds.selector | TIERS | rounds.selector={name: uniform, count: 2} | rounds.selector=all
common_start | ALGORITHM | FEDBUFF | ALGORITHM=scaffold | rounds.server=synchronous
common_start | ALGORITHM | FEDBUFF | ALGORITHM=feddyn | rounds.server=synchronous
common_start | ALGORITHM | FEDBUFF | ALGORITHM=feddc | rounds.server=synchronous
common_start | ALGORITHM | FEDBUFF | ALGORITHM=fednova | rounds.server=synchronous
common_start | ALGORITHM | FEDBUFF | ALGORITHM=hypcluster | rounds.server=synchronous
common_start | ALGORITHM | FEDBUFF | ALGORITHM=feddrift | rounds.server=synchronous
as_sent | rounds.server | ALGORITHM=ca2fl | FEDBUFF | rounds.server.staleness=constant
as_sent | rounds.server | ALGORITHM=ca2fl; FEDBUFF | rounds.server={name: fedbuff, buffer: 2, staleness: constant, server_lr: 0.5} | rounds.server.server_lr=1
as_sent | rounds.server | ALGORITHM=ca2fl; DYNAMIC | rounds.server={name: fedasync, staleness: constant} | rounds.server={name: semi_synchronous, every_s: 1, staleness: constant}
as_sent | rounds.server | ALGORITHM=ca2fl; DYNAMIC | rounds.server={name: fedasync, staleness: constant} | rounds.server=synchronous
as_sent | rounds.server | ALGORITHM=feddyn | rounds.server.unbiased=true | rounds.server.unbiased=false
as_sent | rounds.server | ALGORITHM=feddc | rounds.server.unbiased=true | ALGORITHM=scaffold
as_sent | rounds.server | ALGORITHM=hypcluster | rounds.server.unbiased=true | rounds.server.unbiased=false
as_sent | rounds.server | ALGORITHM=feddrift | rounds.server.unbiased=true | rounds.server.unbiased=false
mean_of_models | ALGORITHM | TIERS | ALGORITHM=fedadam | ALGORITHM=moon
mean_of_models | ALGORITHM | CLOUD | ALGORITHM=scaffold | ALGORITHM=apfl
one_model | rounds.server | CLOUD | TIERS | rounds.server={name: semi_synchronous, every_s: 1}
rounds_of_theory | learning.theory | FEDBUFF | THEORY | learning.theory=null
fixed_shares | radio.sharing | FEDL | DYNAMIC | STATIC
fixed_shares | radio.sharing | record.energy_excess=true | DYNAMIC | STATIC
own_power | radio.budget.uplink_power_over_share | FEDL | radio.budget.uplink_power_over_share=per_resource_block | radio.budget.uplink_power_over_share=full
one_change | learning.privacy | PRIVATE | ALGORITHM=scaffold | ALGORITHM=fednova
one_change | learning.privacy | PRIVATE | learning.warm_start=similarity | learning.warm_start=previous
mean_of_updates | learning.privacy | NOISED | ALGORITHM=fednova | learning.privacy.where=device
mean_of_updates | learning.privacy | NOISED | ALGORITHM=feddyn | learning.privacy.where=device
mean_of_updates | learning.privacy | NOISED | FEDBUFF | learning.privacy.where=device
mean_of_updates | learning.privacy | NOISED | rounds.server.unbiased=true | learning.privacy.where=device
mean_of_updates | learning.privacy | NOISED | learning.uplink_codec=rand_k | learning.privacy.where=device
mean_of_updates | learning.privacy | NOISED | learning.uplink_codec=qsgd | learning.privacy.noise=0
theorem | learning.local.momentum | THEORY | learning.local.momentum=0.9 | learning.local.momentum=0
theorem | OPTIMISER | THEORY | OPTIMISER=adam | OPTIMISER=sgd
theorem | ALGORITHM | THEORY | ALGORITHM=fedprox | ALGORITHM=fedavg
theorem | learning.warm_start | THEORY | learning.warm_start=continuous | learning.warm_start=average
theorem | learning.local.weight_decay | THEORY | learning.local.weight_decay=0.1 | learning.theory=null
theorem | learning.local.clip_norm | THEORY | learning.local.clip_norm=1 | learning.theory=null
theorem | learning.local.augmentation | THEORY | learning.local.augmentation=true | learning.theory=null
theorem | learning.privacy | THEORY | learning.privacy={clip_norm: 1} | learning.theory=null
theorem | learning.uplink_codec | THEORY | learning.uplink_codec=top_k | learning.theory=null
theorem | learning.downlink_codec | THEORY | learning.downlink_codec=top_k | learning.theory=null
something_sent | learning.uplink_codec | learning.uplink_codec=top_k | ALGORITHM=local_only | learning.uplink_codec=null
something_sent | learning.downlink_codec | learning.downlink_codec=top_k | ALGORITHM=local_only | learning.downlink_codec=null
one_received | learning.downlink_codec | learning.downlink_codec=top_k | ALGORITHM=hypcluster | learning.downlink_codec=null
sums_of_gradients | OPTIMISER | ALGORITHM=scaffold | OPTIMISER=adamw | OPTIMISER=sgd
sums_of_gradients | OPTIMISER | ALGORITHM=scaffold | OPTIMISER={name: sgd, state: kept} | OPTIMISER=sgd
sums_of_gradients | OPTIMISER | ALGORITHM=feddc | OPTIMISER=adamw | OPTIMISER=sgd
sums_of_gradients | OPTIMISER | ALGORITHM=feddc | OPTIMISER={name: sgd, state: kept} | OPTIMISER=sgd
sums_of_gradients | OPTIMISER | ALGORITHM=fednova | OPTIMISER=adamw | OPTIMISER=sgd
sums_of_gradients | OPTIMISER | ALGORITHM=fednova | OPTIMISER={name: sgd, state: kept} | OPTIMISER=sgd
sums_of_gradients | OPTIMISER | ALGORITHM={name: ditto, lr_factor: 0.5} | OPTIMISER=adamw | OPTIMISER=sgd
sums_of_gradients | OPTIMISER | ALGORITHM={name: ditto, lr_factor: 0.5} | OPTIMISER={name: sgd, state: kept} | OPTIMISER=sgd
fresh_state | OPTIMISER | ALGORITHM=ditto | OPTIMISER={name: sgd, state: kept} | OPTIMISER.state=fresh
fresh_state | OPTIMISER | ALGORITHM=apfl | OPTIMISER={name: sgd, state: kept} | OPTIMISER.state=fresh
plain_steps | learning.model | NUMBA | learning.model=cnn2 | learning.kernels=torch
plain_steps | learning.task | NUMBA | learning.task=regression | learning.kernels=torch
plain_steps | learning.warm_start | NUMBA | learning.warm_start=continuous | learning.kernels=torch
plain_steps | OPTIMISER | NUMBA | OPTIMISER=adam | learning.kernels=torch
plain_steps | learning.local.clip_norm | NUMBA | learning.local.clip_norm=1 | learning.kernels=torch
plain_steps | learning.local.augmentation | NUMBA | learning.local.augmentation=true | learning.kernels=torch
plain_steps | learning.local.batching | NUMBA | learning.local.batching=stacked | learning.kernels=torch
plain_steps | learning.local.precision | NUMBA | learning.local.precision=bf16 | learning.kernels=torch
plain_steps | ALGORITHM | NUMBA | ALGORITHM=fedprox | ALGORITHM=fedavg
plain_steps | ALGORITHM | NUMBA | ALGORITHM=moon | ALGORITHM=fedavg
plain_steps | ALGORITHM | NUMBA | ALGORITHM=ditto | ALGORITHM=fedavg
plain_steps | ALGORITHM | NUMBA | ALGORITHM=scaffold | ALGORITHM=fedavg
plain_steps | learning.local.early_stopping | NUMBA; learning.local.epochs=3 | learning.local.early_stopping=0.04 | learning.local.early_stopping=null
epochs | learning.local.epochs | learning.local.early_stopping=0.04 |  | learning.local.epochs=2
epochs | learning.local.epochs | ALGORITHM=flash |  | ALGORITHM=fedadam
one_tested | learning.evaluation.metrics | METRICS | learning.evaluation.tested_on=devices | learning.evaluation.tested_on=labels
one_tested | learning.evaluation.metrics | METRICS | ALGORITHM=hypcluster | learning.evaluation.metrics=[]
one_tested | learning.evaluation.metrics | METRICS | learning.drift=label_swap | learning.drift=null
measured_rates | radio.scheduler | MEASURED | radio.scheduler=round_robin | radio.scheduler=equal_share
fixed_shares | radio.measured | FEDL | MEASURED | rounds.selector=all
""",
    SHORT,
)


def clash_of(error: BaseException | None) -> _Clash:
    """Return the clash that caused a scenario's error."""
    while error is not None and not isinstance(error, _Clash):
        inner = error.errors()[0].get("ctx", {}).get("error") if hasattr(error, "errors") else None
        error = inner or error.__cause__
    assert error is not None, "another rule refuses the scenario"
    return error


@pytest.mark.parametrize(("code", "place", "asked", "clashes", "remedy"), CASES)
def test_a_row_refuses_and_has_a_remedy(code: str, place: str, asked: str, clashes: str, remedy: str) -> None:
    keys = [key for keys in (asked, clashes) for key in keys.split("; ") if key]
    with pytest.raises(EdgeflError) as error:
        load_scenario(BASE, keys)
    assert clash_of(error.value).code == code
    assert f" {place}: " in f" {error.value}"
    load_scenario(BASE, [*keys, remedy])


def test_each_row_has_a_case() -> None:
    assert len(ROWS) <= 25
    assert {row.code for row in ROWS} == {case[0] for case in CASES}


class Momentum(FedAvgM):
    """An external algorithm that differs only in its name."""


class Logged(FedAvg):
    """An algorithm that inspects the updates that it aggregates, and may therefore use each of them."""

    def aggregate(self, model: Any, updates: Updates, state: ServerState) -> tuple[Any, ServerState]:
        print(len(updates.rows))
        return super().aggregate(model, updates, state)


class Declared(Logged):
    """An algorithm that declares what its own `aggregate` uses."""

    uses: ClassVar = "models"


def test_own_subclasses_inherit_what_they_need() -> None:
    """A subclass that overrides `aggregate` must declare again what it uses."""
    load_scenario(BASE, [SHORT["NOISED"], f"learning.algorithm={__name__}:Momentum"])
    for (asked,) in rows("CLOUD\nTIERS\nNOISED", SHORT):
        load_scenario(BASE, [*asked.split("; "), f"learning.algorithm={__name__}:Declared"])
        with refused_at("", "or declare `uses` in its class"):
            load_scenario(BASE, [*asked.split("; "), f"learning.algorithm={__name__}:Logged"])


@pytest.mark.parametrize("name", ["fedavg", "fedprox", "feddyn", "moon", "ditto", "apfl", "fedadam"])
def test_others_take_any_steps(name: str) -> None:
    load_scenario(BASE, [f"learning.algorithm={name}", "learning.local.optimiser=adam"])


ASKED = sorted({asked for _, _, asked, clashes, _ in CASES if clashes.startswith("learning.algorithm=")})


@pytest.mark.parametrize("asked", [*ASKED, SHORT["NOISED"]])
def test_remedies_name_only_algorithms_that_fit(asked: str) -> None:
    keys, named, fitting = [key for key in asked.split("; ") if key], list[set[str]](), set[str]()
    for name in registry.names("algorithms"):
        try:
            load_scenario(BASE, [*keys, f"learning.algorithm={name}"])
            fitting.add(name)
        except EdgeflError as error:
            remedy = re.search(r"use ((\w+, )*\w+ or \w+)", str(error))
            named.append(
                set(re.split(", | or ", remedy[1])) & {*registry.names("algorithms")} if remedy else set()
            )
    assert all(one <= fitting for one in named), (named, fitting)


@pytest.mark.parametrize(("name", "sent"), [("scaffold", "more than that"), ("local_only", "no update")])
def test_privacy_says_what_a_device_sends(name: str, sent: str) -> None:
    with pytest.raises(EdgeflError, match=f"with {name} a device sends {sent}: use "):
        load_scenario(BASE, [SHORT["NOISED"], f"learning.algorithm={name}"])

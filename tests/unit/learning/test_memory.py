"""Test the estimate of a scenario's least memory before it is built, and the error if a machine has less."""

import math
import platform
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from edgefl.config import registry
from edgefl.engine.federation.plan import LINKS_AT_ONCE
from edgefl.errors import EdgeflError
from edgefl.learners import building
from edgefl.learning import memory
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.datasets.synthetic import Synthetic
from edgefl.learning.federation.cell_building import build_module
from edgefl.learning.local import cost
from edgefl.learning.memory import Need
from edgefl.learning.models.mlp2 import Mlp2
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.rng import Streams
from edgefl.run.api import simulate
from edgefl.run.plan import prepare
from edgefl.scenario import memory_needs
from edgefl.scenario import scenario as scenarios
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.studies import validation
from tests.refusals import refused_at
from tests.tables import sections

UNTRAINED = """\
name: small
devices: {count: 100}
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 1000, flops_per_sample: 1.0e+3}
"""
TRAINED = UNTRAINED.partition("workload")[0] + "learning: {dataset: digits, model: logistic}\n"
HELD = "radio.sharing=static"


def loaded(folder: Path, text: str, *sets: str) -> Scenario:
    (folder / "a.yaml").write_text(text)
    return scenarios.load(folder / "a.yaml", sets)


def world_of(folder: Path, text: str, *sets: str) -> World:
    return World(loaded(folder, text, *sets), Streams(1))


def test_the_largest_need_is_named_with_its_estimate() -> None:
    needs = [Need(("a",), 1e9, "one thing"), Need(("b", "c"), 3e9, "another")]
    memory.require(needs, 4e9)
    with pytest.raises(EdgeflError) as error:
        memory.require(needs, 3.9e9)
    message = "needs at least 4 GB of memory, 3 GB of it for another; 3.9 GB are available here"
    assert (str(error.value), error.value.place) == (message, ("b", "c"))
    memory.require([], 0)


def test_the_world_s_needs(tmp_path: Path) -> None:
    devices, together = memory_needs.of_world(loaded(tmp_path, UNTRAINED, "radio.sharing=static"))
    assert (devices.place, devices.size) == (("devices", "count"), 30_000)
    assert (together.place, together.size) == (("devices", "count"), 250_000)
    cells = loaded(tmp_path, UNTRAINED, "layout.rings=2", "radio.propagation.shadowing=spatial")
    assert [need.size for need in memory_needs.of_world(cells)] == [30_000, 100 * 19 * 12]
    generated = loaded(tmp_path, TRAINED, "learning.dataset={name: synthetic, groups: 1000}")
    assert memory_needs.of_world(generated)[-1].size == 2 * 1000 * 50 * (60 * 4 + 16)
    assert memory_needs.of_world(generated)[-1].place == ("learning", "dataset")


# bytes that two pages of fading need per link: as complex gains, and as powers averaged over parts of the band
PAGES, POWERS = (400 * 2 * 2 * 8, 256 * 2 * 8)


@pytest.mark.parametrize(
    ("sets", "links", "each"),
    [
        ([HELD], 0, 0),  # long transfers draw no fading (renewal)
        ([HELD, "radio.fidelity=slot"], 100, POWERS),
        ([HELD, "radio.fidelity=slot", "radio.link.frequency_taps=4"], 100, POWERS),
        ([HELD, "radio.fidelity=slot", "radio.link.frequency_taps=1"], 100, PAGES),
        ([], 100, POWERS),
        # the fading of devices is drawn in several chunks
        ([HELD, "radio.fidelity=slot", "devices.count=100000"], LINKS_AT_ONCE, POWERS),
        ([HELD, "radio.fidelity=slot", "devices.count=100000", "rounds.deadline_s=9"], 100_000, POWERS),
        (["devices.count=100000"], 100_000, POWERS),
    ],
)
def test_a_round_s_links_need_their_fading(tmp_path: Path, sets: list[str], links: int, each: int) -> None:
    scenario = loaded(tmp_path, UNTRAINED, *sets)
    together = memory_needs.of_world(scenario)[1]
    assert together.size == 2_500 * scenario.devices.count + each * links


def test_a_round_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = loaded(tmp_path, UNTRAINED, "devices.count=1000000")
    monkeypatch.setattr(memory_needs, "available_bytes", lambda: 6e9)
    with refused_at("devices.count", "needs at least 6", "1,000,000 devices"):
        memory_needs.check(memory_needs.of_world(scenario))
    # if a round selects 100 of the million devices, it needs little memory
    some = scenario.with_(rounds__selector={"name": "uniform", "count": 100})
    memory_needs.check(memory_needs.of_world(some))


def test_memory_of_places_is_counted_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nineteen sites 500 m apart need two fields with nodes every 1.25 and 1.6 m over a disc with all cells."""
    sets = [
        "radio.preset=journal",
        "layout={rings: 2, isd_m: 500}",
        "radio.propagation.shadowing=spatial",
        "radio.propagation.line_of_sight=probabilistic",
    ]
    # for static devices, only nodes around the devices are kept, plus a whole field while it is made
    (still,) = memory_needs.of_places(World(loaded(tmp_path, UNTRAINED, *sets), Streams(1)))
    world = World(loaded(tmp_path, UNTRAINED, *sets, "devices.mobility=random_waypoint"), Streams(1))
    (need,) = memory_needs.of_places(world)
    side_m = 2 * world.extent.field_radius_m
    nodes = sum((8 * side_m / correlation_m) ** 2 for correlation_m in (10.0, 13.0, 50.0))
    table = 4 * 19 * nodes
    assert still.size < 0.5 * table < table < need.size < 1.5 * table
    memory_needs.check(memory_needs.of_places(world))
    monkeypatch.setattr(memory_needs, "available_bytes", lambda: 1e8)
    with refused_at("layout", "19 sites"):
        memory_needs.check(memory_needs.of_places(world))
    journal = World(loaded(tmp_path, UNTRAINED, "radio.preset=journal"), Streams(1))
    assert memory_needs.of_places(journal) == []


def test_generated_data_take_no_less_than_estimated() -> None:
    dataset = Synthetic(groups=20)
    data = dataset.load()
    splits = (data.train, data.test)
    made = sum(each.nbytes for s in splits for each in (s.x, s.y, s.groups) if each is not None)
    assert dataset.least_bytes() <= 2 * made


@pytest.mark.parametrize("mobility", ["static", "{name: random_waypoint, area_factor: 2}"])
def test_a_poisson_process_rarely_has_fewer_devices_than_estimated(tmp_path: Path, mobility: str) -> None:
    """The estimate is six standard deviations below the mean; one seed in 10^9 has fewer devices."""
    scenario = loaded(
        *(tmp_path, UNTRAINED, "devices.count=null", "devices.density_per_km2=2000"),
        f"devices.mobility={mobility}",
    )
    key, least = memory_needs._least_devices(scenario.devices, scenario.extent)
    drawn = [World(scenario, Streams(seed)).count for seed in range(5)]
    assert key == "density_per_km2"
    assert 0.6 * np.mean(drawn) < least < min(drawn)
    few = loaded(tmp_path, UNTRAINED, "devices.count=null", "devices.density_per_km2=1")
    assert memory_needs._least_devices(few.devices, few.extent) == ("density_per_km2", 0.0)


SEVEN = "rounds.selector={name: uniform, count: 7}"


@pytest.mark.parametrize(
    ("sets", "place", "participants"),
    [
        ((), ("devices", "count"), 100),
        ((SEVEN,), ("rounds", "selector", "count"), 7),
        ((SEVEN, "devices.count=7"), ("rounds", "selector", "count"), 7),
        # in each of these cases, devices may be absent in the first round
        (("devices.mobility=random_waypoint",), (), 1),
        (("devices.churn=duty_cycle",), (), 1),
        (("devices.battery_j=5",), (), 1),
        (("layout.rings=1", "radio.propagation.shadowing=spatial"), (), 1),
    ],
)
def test_certain_participants(
    tmp_path: Path, sets: tuple[str, ...], place: tuple[str, ...], participants: int
) -> None:
    scenario = loaded(tmp_path, TRAINED, *sets)
    sections = scenario.rounds, scenario.devices, scenario.layout
    assert memory_needs._least_participants(*sections, scenario.devices.count) == (place, participants)


def test_the_needs_of_training(tmp_path: Path) -> None:
    models, batches = memory_needs.of_training(world_of(tmp_path, TRAINED, "learning.local.steps=7"), 650)
    assert (models.place, models.size) == (("devices", "count"), 4 * 102 * 650)
    assert (batches.place, batches.size) == (("learning", "local", "steps"), 20 * 7 * 100)
    moving = world_of(tmp_path, TRAINED, "devices.mobility=random_waypoint", "learning.local.epochs=9")
    models, batches = memory_needs.of_training(moving, 650)
    assert (models.place, models.size) == (("learning", "model"), 4 * 3 * 650)
    assert (batches.place, batches.size) == (("learning", "local", "epochs"), 20 * 9)
    assert memory_needs.of_training(world_of(tmp_path, UNTRAINED), 650) == []


def test_run_and_validate_refuse_too_many_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_needs, "available_bytes", lambda: 0.5e9)
    many = loaded(
        tmp_path, UNTRAINED, "devices.count=1000000", "layout.rings=2", "radio.propagation.shadowing=spatial"
    )
    estimate = (
        "needs at least 0.528 GB of memory, 0.3 GB of it for 1,000,000 devices; 0.5 GB are available here"
    )
    with pytest.raises(EdgeflError) as error:
        simulate(many, tmp_path / "out")
    assert str(error.value) == f"--set devices.count=1000000 devices.count: {estimate}"
    (tmp_path / "a.yaml").write_text(scenarios.dump(many))
    with pytest.raises(EdgeflError) as error:
        validation.check(tmp_path / "a.yaml")
    line = scenarios.dump(many).splitlines().index("  count: 1000000") + 1
    assert str(error.value) == f"{tmp_path}/a.yaml:{line} devices.count: {estimate}"
    assert not (tmp_path / "out").exists()


def test_too_large_models_are_refused_unbuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*about: object) -> torch.nn.Module:
        assert torch.empty(0).device.type == "meta", "made"
        return torch.nn.Linear(10**6, 75)

    monkeypatch.setattr(Mlp2, "build", build)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e9)
    wide = loaded(tmp_path, TRAINED, "learning.model={name: mlp2, hidden: 1000000}", "devices.count=10")
    place = "--set devices.count=10 devices.count"
    with refused_at("", f"{place}: needs at least 3.6 GB", "for 12 models of 75,000,075 p"):
        simulate(wide, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out").exists()


def test_a_round_s_batches_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 2 devices x 10^8 steps x 5 samples at 21 bytes are refused before they are made."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 20.9e9)
    samples, generators = [np.arange(5), np.arange(3)], [np.random.default_rng(k) for k in range(2)]
    with pytest.raises(EdgeflError) as error:
        draw_batches(samples, [10**8, 1], 5, generators)
    message = "needs at least 21 GB of memory, 21 GB of it for a round's batches; 20.9 GB are available here"
    assert (str(error.value), error.value.place) == (message, ("learning", "local", "steps"))
    assert draw_batches(samples, [3, 3], 5, generators).rows.shape == (2, 3, 5)


@pytest.mark.parametrize("name", [name for name in registry.names("models") if name != "factory"])
def test_the_size_of_a_model_is_known_without_making_it(name: str) -> None:
    model = registry.get("models", name)()
    shape, classes = model.typical_input, model.typical_classes
    state = torch.get_rng_state()
    size = cost.size(model, shape, classes)
    assert torch.equal(torch.get_rng_state(), state)  # PyTorch's random state has not changed
    assert size == ModelLayout.of(build_module(model, shape, classes, Streams(0))).size


class FromOutside:
    """A model that computes with its initial values."""

    def build(self, input_shape: tuple[int, ...], classes: int) -> torch.nn.Module:
        layer = torch.nn.Linear(2, 2)
        layer.weight.detach().numpy()
        return layer


def test_a_model_that_cannot_be_sized_is_not_refused() -> None:
    assert cost.size(FromOutside(), (2,), 2) == 0


MEMINFO = "MemTotal: 100 kB\nMemAvailable:      50 kB\nSwapFree: 7 kB\n"
GROUP, FS = "proc/self/cgroup", "sys/fs/cgroup"
LIMITS = {f"{FS}/outer/memory.max": "2048\n", f"{FS}/outer/inner/memory.max": "max\n"}
OLD_LIMITS = {
    f"{FS}/memory/memory.limit_in_bytes": "9223372036854771712\n",
    f"{FS}/memory/x/memory.limit_in_bytes": "3072\n",
}


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({}, 57 * 1024),
        ({GROUP: "0::/\n"}, 57 * 1024),
        ({GROUP: "0::/outer/inner\n", **LIMITS}, 9 * 1024),  # including swap
        ({GROUP: "0::/as/seen/from/outside\n", f"{FS}/memory.max": "1024\n"}, 8 * 1024),
        ({GROUP: "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n", **OLD_LIMITS}, 10 * 1024),
    ],
)
def test_available_memory(tmp_path: Path, files: dict[str, str], available: int) -> None:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert memory.available_bytes(tmp_path) == available


def test_some_memory_is_available_here() -> None:
    assert 1e6 < memory.available_bytes() < math.inf


def test_federations_that_do_not_fit_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Federations that fit into memory only one at a time are refused, as all local models exist at once."""
    learning = "{dataset: digits, model: {name: mlp2, hidden: 512}, partition: iid}"
    keys = f"""
        name=both; devices={{count: 8}}; sessions={{name: schedule, count: 1, rounds: 1}}
        radio={{preset: journal, sharing: dynamic, scheduler: equal_share}}
        federations.a={{share: 0.5, learning: {learning}}}; federations.b={{share: 0.5, learning: {learning}}}
    """
    scenario = scenarios.load(sections(keys))
    world = World(scenario, Streams(scenario.seed))
    # by the formula of `test_the_needs_of_training`
    parameters = world.of_federation("a").sections.learning.model.size((64,), 10).parameters
    needs = (memory_needs.of_training(world.of_federation(name), parameters) for name in "ab")
    a, b = (sum(need.size for need in of) for of in needs)
    assert a == b
    for available, fits in ((a + b, True), (a + b - 1, False)):
        monkeypatch.setattr(building.memory, "available_bytes", lambda room=available: room)
        with nullcontext() if fits else refused_at("", "needs at least"):
            assert set(prepare(scenario, device="cpu").learners) == {"a", "b"}


FAULTS = """\
import resource, torch
from edgefl.learning import memory
torch.set_num_threads(1)

def faults() -> int:
    '''Pages of 4 kB that twenty blocks of 40 MB take, one after the other, beyond those of the first one.'''
    torch.zeros(10_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.zeros(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), int(memory.reuse_freed()), min(faults(), faults()))  # of the first some are its own
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc reuses memory in this way")
def test_freed_memory_is_used_again() -> None:
    """Freed memory is reused, so that the system need not fill fresh pages with zeros when first touched."""
    said = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True).stdout
    before, done, after = map(int, said.split())
    assert done
    assert after < 100 < before


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_the_peak_of_a_process_is_its_own() -> None:
    """The peak excludes other processes, while getrusage's peak of a child includes its parent's memory."""
    held = np.ones(40_000_000)  # 320 MB
    ask = "from edgefl.learning import memory; print(memory.peak_bytes())"
    asked = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True)
    assert 1e6 < float(asked.stdout) < 150e6 < held.nbytes < memory.peak_bytes()

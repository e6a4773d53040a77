"""The physical world of a scenario, with sites, moving devices, network and radio."""

import copy
import math
from collections.abc import Collection, Generator, Iterator
from functools import cached_property
from itertools import pairwise
from typing import cast

import numpy as np
import simpy

from edgefl.channel.antenna import Sectors
from edgefl.channel.band_slots import Groups
from edgefl.channel.geometry import poisson_count, sample_ring
from edgefl.channel.units import dbm_to_watt
from edgefl.config import shipped
from edgefl.engine.air import propagation
from edgefl.engine.air.background import BackgroundTraffic
from edgefl.engine.air.background_users import BackgroundUsers
from edgefl.engine.air.coverage import Coverage
from edgefl.engine.air.gains import LargeScaleGains, SpatialGains
from edgefl.engine.air.indoors import BehindWalls, Obstacles
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.measured.rates import MeasuredRates, read
from edgefl.engine.air.measured.replay import MeasuredCells, MeasuredGains, MeasuredRadio
from edgefl.engine.air.measurements import Measurements
from edgefl.engine.air.radio import Radio
from edgefl.engine.cells.borders import Borders
from edgefl.engine.cells.network import Network
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.devices.power import Power
from edgefl.engine.records import Recorder
from edgefl.errors import EdgeflError, moved, refused
from edgefl.mobility import Mobility, Movement, RecordedMovement, checked, trips
from edgefl.mobility._together import Together
from edgefl.places.areas import Places, places
from edgefl.rng import Streams
from edgefl.scenario.federation_settings import sizes
from edgefl.scenario.own_sections import OwnSections
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.speeds import doppler_speeds_m_s

# s between two checks of whether devices have crossed the edge of the only cell; a car moves 3 m meanwhile
EDGE_TICK_S = 0.1


class World:
    """The physical world of a scenario, which builds each part on first use and writes no file.

    Attributes:
        scenario: the run's scenario, used for the record and for messages only.
        federations: name of each federation (empty for a single federation) -> the federation's sections.
        sections: sections of this world's federation. only: ids of the federation's devices, or None for all devices.
    """

    def __init__(self, scenario: Scenario, streams: Streams) -> None:
        self.scenario, self.streams = scenario, streams
        self.extent, self.devices, self.handover = scenario.extent, scenario.devices, scenario.handover
        self.federations, self.sections = scenario.by_federation, scenario.sections
        self.only: frozenset[int] | None = None
        # time between two checks of the devices
        self.tick_s = self.handover.measurement_interval_s if self.layout.several else EDGE_TICK_S
        self._map = scenario.areas, scenario.origin_lon_lat, scenario.streets

    @property
    def layout(self) -> LayoutSettings:
        """The scenario's section `layout`: settings of the sites and their cells."""
        return self.extent.layout

    @property
    def sites_m(self) -> np.ndarray:
        """Positions [cells, 2] of the base stations in m, the central station first."""
        return self.layout.sites_m

    @property
    def cells_m(self) -> np.ndarray:
        """A point [cells, 2] for each cell, in m: the base station; with sectors, 1 m in front of the cell's panel.

        A position belongs to the cell with the nearest point.
        """
        if self.sectors is None:
            return self.sites_m
        ahead = np.radians([panel.azimuth_deg for of in self.sectors.panels for panel in of])
        return self.sites_m[self.sectors.sites] + np.stack([np.cos(ahead), np.sin(ahead)], axis=1)

    @property
    def sectors(self) -> Sectors | None:
        """The panels of all sites with sectors, or None if antennas are omnidirectional."""
        return propagation.panels(self.extent)

    @property
    def served(self) -> list[int]:
        """The cells that have a server: all cells, the central cell, or the listed cells."""
        return self.layout.served

    @cached_property
    def places(self) -> Places:
        """The map: areas by name, geographic location of the origin, and streets."""
        return places(*self._map)

    @cached_property
    def count(self) -> int:
        """The number of devices in the world, present or not."""
        devices, extent = self.devices, self.extent
        if devices.number is not None:
            return devices.number
        if devices.count == "all":
            return len(self.movement.positions_m(0.0))
        density = devices.density_per_km2
        assert density is not None  # the schema requires a density if there is no count
        ring = {"inner_radius_m": extent.kept_free_m, "outer_radius_m": extent.area_radius_m}
        count = poisson_count(self.streams("drop", "count"), density_per_km2=density, **ring)
        if count == 0:
            raise EdgeflError(
                f"{density}: with seed {self.streams.seed} there is no device; raise the density",
                ("devices", "density_per_km2"),
            )
        return count

    @property
    def alone(self) -> OwnSections | None:
        """The sections of the only federation; None if several federations share the cells."""
        return self.federations.get("")

    @property
    def members_count(self) -> int:
        """The number of devices of this world's federation."""
        return self.count if self.only is None else len(self.only)

    @cached_property
    def fleet(self) -> Fleet:
        """The properties of every device, which follow from the device's class."""
        settings = self.devices
        if settings.classes_by == "types":
            recorded = cast(RecordedMovement, self.movement).recorded
            return Fleet.of_types(settings, recorded, self.streams)
        return Fleet.drawn(settings, self.count, self.streams)

    @cached_property
    def movement(self) -> Movement:
        """The movement of all devices, each by the mobility model of its class."""
        settings = self.devices
        if settings.count == "all":
            return settings.mobility.within(self.places).start_all()
        if settings.classes_by == "types":
            return self._start(settings.mobility, self.count, self.streams)
        groups = self.fleet.groups(lambda kind: kind.mobility)
        if len(groups) == 1:
            return self._start(groups[0][0], self.count, self.streams)
        parts = []
        for mobility, ids in groups:
            name, place = self.fleet.first_with("mobility", mobility)
            with moved(("devices", "mobility"), place):
                if mobility.own_numbers:
                    # a file or a road numbers the class's devices from 0, and the class has its own random streams
                    mine, rows = self.streams.below("class", name), np.arange(len(ids))
                    movement = self._start(mobility, len(ids), mine) if len(ids) else None
                else:
                    movement, rows = self._start(mobility, self.count, self.streams), ids
            if movement is not None:
                parts.append((ids, movement, rows))
        return Together(parts)

    def _start(self, mobility: Mobility, count: int, streams: Streams) -> Movement:
        """Place devices uniformly over the area outside the minimum distance from the centre; start to move them."""
        extent = self.extent
        mobility = mobility.within(self.places)
        movement = mobility.start(
            sample_ring(
                streams("drop", "positions"),
                count,
                inner_radius_m=extent.kept_free_m,
                outer_radius_m=mobility.area_radius_m(extent.radius_m),
            ),
            cell_radius_m=extent.radius_m,
            min_distance_m=extent.kept_free_m,
            streams=streams,
        )
        return checked(mobility, movement, count)

    @property
    def may_cross(self) -> bool:
        """Whether devices may cross the edge of a cell, by moving between several cells or out of the only cell."""
        several = self.layout.several
        further = self.extent.area_radius_m > self.extent.radius_m or any(
            mobility.goes_anywhere for _, mobility in self.devices.mobilities()
        )
        return self.movement.moves and (several or further)

    @cached_property
    def populations(self) -> list[range]:
        """The device ids of each standing population, ascending; the first populations may have one device more."""
        groups = self.devices.populations
        if self.count < groups:
            raise EdgeflError(
                f"with seed {self.streams.seed} there are {self.count} devices, too few for {groups} populations",
                ("devices", "populations"),
            )
        size, more = divmod(self.count, groups)
        begins = [size * group + min(group, more) for group in range(groups + 1)]
        return [range(begin, end) for begin, end in pairwise(begins)]

    def members(self, session: int) -> Collection[int] | None:
        """Return the devices that may take part in a session, or None if all present devices may take part."""
        allowed = self.fleet.members(session)
        if self.only is not None:
            allowed = self.only if allowed is None else self.only.intersection(allowed)
        if len(self.populations) == 1:
            return allowed
        turn = self.populations[(session - 1) % len(self.populations)]
        return turn if allowed is None else frozenset(turn).intersection(allowed)

    @cached_property
    def federation_of(self) -> np.ndarray:
        """The federation of each device [devices], an index in `scenario.federations`.

        With shares, a number is drawn for each device from a separate random stream, and devices are assigned to
        federations in ascending order of these numbers.
        """
        settings = [one.settings for one in self.federations.values() if one.settings]
        of = np.zeros(self.count, dtype=np.intp)
        if not settings:
            return of
        if settings[0].classes is None:
            order = np.argsort(self.streams("federation").random(self.count), kind="stable")
            of[order] = np.repeat(np.arange(len(settings)), sizes(settings, self.count))
            return of
        for place, one in enumerate(settings):
            kinds = [kind for kind, name in enumerate(self.fleet.names) if name in (one.classes or ())]
            of[np.isin(self.fleet.of, kinds)] = place
        return of

    def of_federation(self, name: str) -> "World":
        """Return this world as seen by one of several federations, with the federation's sections and devices."""
        if not name:
            return self
        other = copy.copy(self)
        other.sections = self.federations[name]
        place = list(self.federations).index(name)
        other.only = frozenset(np.flatnonzero(self.federation_of == place).tolist())
        return other

    @property
    def by_federation(self) -> dict[str, "World"]:
        """The world as seen by each federation, by the federation's name; a single federation's name is empty."""
        return {name: self.of_federation(name) for name in self.federations}

    @property
    def _groups(self) -> Groups | None:
        """The federations as groups of devices that share the band by weight, or None for a single federation."""
        weights = [one.settings.weight for one in self.federations.values() if one.settings]
        if not weights:
            return None
        of = self.federation_of.tolist()
        return Groups(lambda id_: of[cast(int, id_)], weights)

    @cached_property
    def gains(self) -> LargeScaleGains:
        """The large-scale gains: drawn for each round (journal paper), fixed by place, or from measured rates."""
        if self.measured is not None:
            return MeasuredGains(self.measured, self.cells_m)
        with refused("radio"):
            return propagation.large_scale_gains(self.extent, self.fleet, self.streams)

    @cached_property
    def measured(self) -> MeasuredRates | None:
        """The measured rates of all devices, or None if rates are computed."""
        settings = self.extent.radio.measured
        if settings is None:
            return None
        rates = read(settings, shipped.data(settings.path))
        rates.check(self.count, self.layout)
        return rates

    def radio(self, env: simpy.Environment) -> Radio:
        """Build the radio of all cells on a simulated clock, from computed or measured rates."""
        settings = self.extent.radio
        power_w = self.fleet.column(lambda kind: dbm_to_watt(kind.transmit_power_dbm))
        if self.measured is not None:
            gains = MeasuredGains(self.measured, self.cells_m, lambda: env.now)
            still = {"speeds_m_s": np.zeros(self.count), "gains": gains, "streams": self.streams}
            return MeasuredRadio(env, self.measured, settings=settings, device_power_w=power_w, **still)
        with refused("radio"):
            return Radio(
                env,
                settings=settings,
                device_power_w=power_w,
                device_bandwidth_hz=self.fleet.column(lambda kind: kind.max_bandwidth_hz or math.inf),
                device_gain_db=self.fleet.column(lambda kind: kind.array_gain_db),
                speeds_m_s=doppler_speeds_m_s(self.movement, self.fleet, settings),
                gains=BehindWalls(self.gains, walls) if (walls := self.walls(env)) else self.gains,
                streams=self.streams,
                reading_s=self.handover.measurement_interval_s,
                groups=self._groups,
            )

    def network(
        self, env: simpy.Environment, recorder: Recorder, coverage: Coverage | None = None
    ) -> Network:
        """Build the network that assigns devices to serving cells; its processes are not started."""
        layout, gains, fleet, handover = self.layout, self.gains, self.fleet, self.handover
        several = layout.several
        by_place = gains if several and isinstance(gains, SpatialGains) else None
        measurements = Measurements(layout.cells, by_place.power_db_of if by_place else None)
        radius_m: float | None = self.extent.edge_m
        if self.measured is not None:
            measurements, radius_m = MeasuredCells(self.measured, env), None
        return Network(
            env,
            movement=self.movement,
            radius_m=radius_m,
            reached=by_place.reached if by_place and by_place.range_m < math.inf else None,
            measurements=measurements,
            power=lambda listener: Power(
                env,
                self.count,
                listener,
                switches=fleet.switches(self.streams),
                batteries=fleet.batteries(),
                idle_power_w=fleet.idle_power_w,
                draws=fleet.draws(),
            ),
            tick_s=self.tick_s,
            handover=handover,
            recorder=recorder,
            coverage=coverage,
            borders=Borders(self.cells_m, self.extent.wraparound) if by_place else None,
        )

    def background(self, radio: Radio) -> Iterator[Generator[simpy.Event, None, None]]:
        """Yield the simulation processes of background traffic; none if the scenario has no background traffic."""
        if self.extent.radio.background is None:
            return
        users = BackgroundUsers(self.devices, self.gains, self.extent, self.streams)
        of_cells = BackgroundTraffic(radio.air, self.served, users.links, self.streams)
        yield from of_cells.processes()

    def rehearsal(self) -> "World":
        """Return a copy of this world with its own copy of the gains, so that this world's counters do not change."""
        other = copy.copy(self)
        other.gains = copy.copy(self.gains)
        return other

    def walls(self, env: simpy.Environment) -> Obstacles | None:
        """Return the penetration loss of buildings and cars over simulated time, or None if it is not modelled."""
        by_trip = self.devices.indoors_by == "trip"
        now = (lambda: trips(self.movement, env.now)) if by_trip else None
        return propagation.obstacles(self.extent, self.fleet, self.streams, now)

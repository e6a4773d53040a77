"""Test which links are measured at which times, and which links share a survey."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Any, cast

import numpy as np
import pytest
import simpy

from edgefl.channel.interference import Heard, Interfered
from edgefl.engine.air.budget import Budget
from edgefl.engine.air.channel_reports import ChannelReports, GainReader
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState
from edgefl.engine.air.links import DIRECTIONS, Links
from edgefl.engine.air.measurements import Survey
from edgefl.engine.air.radio_link_monitoring import RadioLinkMonitoring
from edgefl.engine.air.radio_settings import RadioSettings

SLOT_S, INTERVAL_S = 0.5e-3, 0.2


class Books:
    """A gain reader whose surveys are recorded, and whose SNR encodes the cell, the device, and the time."""

    def __init__(self, shared: bool = False) -> None:
        self.env = simpy.Environment()
        self.surveys: list[tuple[float, list[int], list[int]]] = []
        self.positions_m = np.zeros((10, 2))
        self.transfers: dict[tuple[ChannelReports, int], AbstractContextManager[None]] = {}
        rules = RadioLinkMonitoring(
            RadioSettings(preset="journal", slot_s=SLOT_S, monitoring={"t310_s": None}), INTERVAL_S
        )
        self.reader = GainReader(
            self.env, rules, cast(Budget, self), cast(LargeScaleGains, self), self.heard, shared
        )
        self.reader.positions_m = lambda: self.positions_m

    def of_round(
        self, positions_m: np.ndarray, ids: list[int], cells: np.ndarray, key: Any
    ) -> LargeScaleState:
        self.surveys.append((self.env.now, ids, cells.tolist()))
        return LargeScaleState(
            ids, 100.0 * cells + ids + self.env.now, np.zeros(len(ids)), np.zeros(len(ids))
        )

    def of_survey(self, survey: Survey, ids: list[int], cells: np.ndarray) -> LargeScaleState:
        self.surveys.append((float(survey.power_db[0, 0]), ids, cells.tolist()))
        none = np.zeros(len(ids))
        return LargeScaleState(ids, survey.power_db[ids, 0], none, none)

    def snr(self, state: LargeScaleState, neighbours: np.ndarray) -> dict[str, np.ndarray]:
        assert len(neighbours) == len(state.ids)
        return dict.fromkeys(DIRECTIONS, state.gains_db * neighbours)

    def heard(self, state: LargeScaleState) -> list[Heard]:
        return cast(list[Heard], [f"{device} hears" for device in state.ids])

    def round(self, ids: list[int], cell: int, interfered: Any = None, neighbours: int = 1) -> ChannelReports:
        snr = {direction: np.full(len(ids), -1.0) for direction in DIRECTIONS}
        cells, none, half = [cell] * len(ids), np.zeros(len(ids)), np.full(len(ids), 0.5)
        links = Links(ids, cells, [], snr, snr, none, uplink_power=half, control=half)
        return ChannelReports(self.reader, cell, (1, "train", cell), links, neighbours, interfered)

    def begin(self, reports: ChannelReports, devices: Collection[int]) -> None:
        for device in devices:
            self.transfers[reports, device] = transfer = reports.under_way(device)
            transfer.__enter__()

    def end(self, reports: ChannelReports, device: int) -> None:
        self.transfers.pop((reports, device)).__exit__(None, None, None)

    def at(self, time_s: float) -> None:
        self.env.run(until=time_s)


@pytest.mark.parametrize("shared", [False, True])
def test_on_the_grid_all_cells_are_read_at_once_and_beside_it_a_link_alone_or_a_round(shared: bool) -> None:
    books = Books(shared)
    one, other = books.round([1, 3, 5], cell=1, neighbours=2), books.round([2, 4], cell=2)
    books.begin(one, [1, 5])
    books.begin(other, [4])
    assert one.snr(1, "downlink") == -1.0, "read at the start of the round"
    books.at(0.1)
    assert one.snr(1, "downlink") == 2 * 101.1
    books.at(0.2)
    assert [other.snr(4, "downlink"), one.snr(1, "downlink"), one.snr(5, "uplink")] == [204.2, 202.4, 105.2]
    beside = (0.1, [1, 5], [1, 1]) if shared else (0.1, [1], [1])
    assert books.surveys == [beside, (0.2, [4, 1, 5], [2, 1, 1])]
    books.end(other, 4)
    books.at(0.4)
    assert one.snr(1, "downlink") == pytest.approx(202.8)
    assert books.surveys[-1] == (0.4, [1, 5], [1, 1])


def test_who_begins_when_another_was_just_read_is_read_too() -> None:
    books = Books()
    one = books.round([1, 3], cell=1)
    books.begin(one, [1])
    books.at(0.3)
    assert one.snr(1, "downlink") == 101.3
    books.begin(one, [3])
    assert one.snr(3, "downlink") == 103.3
    assert [ids for _, ids, _ in books.surveys] == [[1], [3]], "no device is read twice at the same time"


def test_absent_devices_keep_what_was_read_last_and_hear_what_they_heard() -> None:
    books = Books()
    links = [cast(Interfered, type("Link", (), {"heard": None})()) for _ in range(2)]
    one = books.round([1, 3], cell=1, interfered=lambda direction: links)
    books.begin(one, [1, 3])
    books.at(0.2)
    assert one.snr(3, "downlink") == 103.2
    assert [link.heard for link in links] == ["1 hears", "3 hears"]
    books.positions_m[3] = np.nan
    links[1].heard = cast(Heard, "old")
    books.at(0.4)
    assert [one.snr(1, "downlink"), one.snr(3, "downlink")] == [101.4, 103.2]
    assert [link.heard for link in links] == ["1 hears", "old"]


def test_where_all_cells_are_surveyed_a_transfer_that_begins_beside_the_grid_has_the_last_tick_s() -> None:
    books = Books()
    last: list[Survey] = []

    def survey(afresh: bool) -> Survey:
        """Return a survey whose power is the current time, for all devices and cells."""
        if afresh:
            last.append(Survey(books.positions_m, np.full((10, 2), books.env.now)))
        return last[-1]

    books.reader.survey = survey
    one, other = books.round([1, 3, 5], cell=1), books.round([2, 4], cell=2)
    books.begin(one, [1])
    books.at(0.2)
    assert one.known_snr(1, "downlink") is None
    assert [one.snr(1, "downlink"), one.known_snr(1, "downlink")] == [0.2, 0.2]
    books.begin(other, [4])
    books.at(0.3)
    assert [other.snr(4, "downlink"), one.known_snr(1, "downlink")] == [0.2, None]
    books.at(0.35)
    books.begin(other, [2])
    assert other.known_snr(2, "uplink") is None, "the unrequested link was not measured"
    assert other.snr(2, "uplink") == 0.2 * 0.5
    books.at(0.4)
    assert other.snr(4, "downlink") == one.snr(1, "downlink") == 0.4
    # the values of all links at the tick are computed when the first transfer begins between two ticks
    assert books.surveys == [(0.2, [1], [1]), (0.2, [2, 4], [2, 2]), (0.4, [2, 4, 1], [2, 2, 1])]


def test_who_is_absent_at_the_last_tick_keeps_beside_the_grid_what_was_read_before() -> None:
    books = Books()
    links = [cast(Interfered, type("Link", (), {"heard": None})()) for _ in range(2)]
    power_db = np.arange(20.0).reshape(10, 2)
    positions_m = np.where(np.arange(10)[:, None] == 3, np.nan, 0.0)
    books.reader.survey = lambda afresh: Survey(positions_m, power_db)
    one = books.round([1, 3], cell=1, interfered=lambda direction: links)
    books.begin(one, [1, 3])
    books.at(0.3)
    assert [one.snr(1, "downlink"), one.snr(3, "downlink")] == [2.0, -1.0]
    assert [link.heard for link in links] == ["1 hears", None]

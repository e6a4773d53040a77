"""Faults of time, bits and joules: handover, energy, servers, rounds."""

from tests.faults import Fault
from tests.faults.injecting import edited

UNIT = "tests/unit/engine/"
TS38331 = "3GPP TS 38.331, 5.5.4.4"
HANDOVER, SERVER = f"{UNIT}cells/test_handover.py", f"{UNIT}federation/test_server.py"

FAULTS = (
    Fault(
        "engine.a3_hysteresis",
        "event A3 is entered without hysteresis",
        TS38331,
        f"{HANDOVER}::test_enters_only_beyond_offset_plus_hysteresis",
        "0.01 dB above or below the threshold",
        edited(
            "edgefl.engine.cells.handover:EventA3.__init__",
            "settings.a3_offset_db + settings.hysteresis_db",
            "settings.a3_offset_db",
        ),
    ),
    Fault(
        "engine.a3_leaving",
        "event A3 is left at offset plus hysteresis",
        TS38331,
        f"{HANDOVER}::test_leaves_only_below_offset_minus_hysteresis",
        "0.01 dB above or below the threshold",
        edited(
            "edgefl.engine.cells.handover:EventA3.__init__",
            "settings.a3_offset_db - settings.hysteresis_db",
            "settings.a3_offset_db + settings.hysteresis_db",
        ),
    ),
    Fault(
        "engine.time_to_trigger",
        "the time to trigger is ignored",
        TS38331,
        f"{HANDOVER}::test_triggers_exactly_the_time_to_trigger_after_entering",
        "1e-6 of the time",
        edited(
            "edgefl.engine.cells.handover:EventA3.measure",
            "first_s + self._trigger_s",
            "first_s + 0.0 * self._trigger_s",
        ),
    ),
    Fault(
        "engine.l3_filter",
        "layer 3 filters with 1/2^k instead of 1/2^(k/4)",
        "3GPP TS 38.331, 5.5.3.2",
        f"{HANDOVER}::test_the_first_measurement_counts_fully_and_later_ones_with_weight_a",
        "nothing",
        edited(
            "edgefl.engine.cells.handover:Layer3Filter.__init__",
            "settings.l3_filter_k / 4",
            "settings.l3_filter_k",
        ),
    ),
    Fault(
        "engine.l3_filter_interval",
        "the filter's memory depends on the number of measurements, whatever their interval",
        "3GPP TS 38.331, 5.5.3.2: time characteristic kept",
        f"{HANDOVER}::test_at_another_interval_the_filter_keeps_its_time_characteristic",
        "1e-6 of the gain",
        edited(
            "edgefl.engine.cells.handover:Layer3Filter.__init__",
            "settings.measurement_interval_s / SAMPLE_S",
            "1.0",
        ),
    ),
    Fault(
        "engine.tail_twice",
        "a tail is counted twice",
        "joules of a part: a tail for each transfer",
        f"{UNIT}test_power_models.py::test_a_phone_draws_a_base_power_and_joules_per_bit_and_then_a_tail",
        "1e-6 of the joules",
        edited(
            "edgefl.engine.federation.open_tails:OpenTails._known",
            "energy_j += self._tails.energy_j",
            "energy_j += 2 * self._tails.energy_j",
        ),
    ),
    Fault(
        "engine.idle_beside_tail",
        "a device is charged idle power during its tail",
        "idle: switched on, nothing else, no tail",
        f"{UNIT}test_power_models.py::test_idle_follows_the_tail",
        "1e-9 of the idle joules",
        edited("edgefl.engine.devices.ledger:_busy_s", "(up_s, up_s + after_uplink_s)", "(up_s, up_s)"),
    ),
    Fault(
        "engine.tail_order",
        "a tail that is cut short is charged at its last stage's power",
        "stages of a tail follow one another",
        f"{UNIT}test_power_models.py::test_the_states_of_tr_38840",
        "two slots of a period at each end; 1e-6 of the tail",
        edited(
            "edgefl.engine.devices.tails:Tails.energy_j",
            "in self._tails[device]",
            "in reversed(self._tails[device])",
        ),
    ),
    Fault(
        "engine.amplifier_share",
        "a device sends with full power whatever its share of power is",
        "TS 38.213, 7.1.1: power follows the path loss",
        f"{UNIT}air/test_power_control.py::test_a_device_sends_with_the_power_that_its_path_loss_requires",
        "1e-9 s, 1e-6 of the joules",
        edited("edgefl.engine.federation.device:Device.send_power_w", "amplifier_w * share", "amplifier_w"),
    ),
    Fault(
        "engine.waiting_power",
        "waiting for a slot is not charged",
        "joules of a transfer: airtime, waiting, bits",
        f"{UNIT}test_power_models.py::test_a_phone_draws_a_base_power_and_joules_per_bit_and_then_a_tail",
        "1e-6 of the joules",
        edited(
            "edgefl.engine.federation.device:Device._energy_j", "wait_s = transfer", "wait_s = 0.0 * transfer"
        ),
    ),
    Fault(
        "engine.battery_recharge",
        "a battery stores half of its recharge",
        "a battery by hand",
        f"{SERVER}::test_a_battery_recharges_and_the_device_comes_back",
        "1e-6 of the time, 1e-9 s of the next round",
        edited(
            "edgefl.engine.devices.battery:Battery._rest_w", "self._recharge_w -", "0.5 * self._recharge_w -"
        ),
    ),
    Fault(
        "engine.battery_brim",
        "a battery stores more than its capacity",
        "a battery by hand",
        f"{UNIT}devices/test_battery.py::test_a_full_battery_stores_no_more",
        "nothing",
        edited("edgefl.engine.devices.battery:Battery._at", "min(self._capacity_j, level_j)", "level_j"),
    ),
    Fault(
        "engine.light_sleep",
        "DRX never sleeps deeply",
        "3GPP TR 38.840, Tables 18 and 19",
        f"{UNIT}test_power_models.py::test_deep_sleep_pays_from_20_ms_on_and_light_sleep_from_6",
        "1e-6 of the units",
        edited(
            "edgefl.engine.power_models.tr38840:TR38840.drx_units",
            "for one in SLEEPS if",
            "for one in SLEEPS[1:] if",
        ),
    ),
    Fault(
        "engine.staleness_version",
        "staleness is counted up to the version before the one that the update enters",
        "staleness: models made since it began",
        f"{UNIT}test_servers.py::test_mean_staleness_is_concurrency_less_one_over_the_buffer",
        "no version",
        edited(
            "edgefl.engine.federation.work:WorkUnderWay.take",
            "staleness=version - done",
            "staleness=version - 1 - done",
        ),
    ),
    Fault(
        "engine.stale_limit",
        "updates with exactly the largest staleness are dropped, too",
        "a limit is inclusive",
        f"{UNIT}test_servers.py::test_an_update_of_the_largest_staleness_is_taken",
        "nothing",
        edited(
            "edgefl.engine.federation.work:WorkUnderWay.drop_stale",
            "takes(staleness)",
            "takes(staleness + 1)",
        ),
    ),
    Fault(
        "engine.staleness_polynomial",
        "an update counts (1 + tau)^-2a instead of (1 + tau)^-a",
        "FedAsync, Xie et al., 2019",
        "tests/unit/test_staleness.py::test_laws",
        "nothing",
        edited("edgefl.contract:Staleness.factors", "** -self.exponent", "** (-2 * self.exponent)"),
    ),
    Fault(
        "engine.surplus",
        "over-selection rounds down",
        "enough updates arrive although some fail",
        f"{SERVER}::test_over_selection_ends_with_the_updates_wanted",
        "1e-9 s",
        edited("edgefl.engine.selectors:with_surplus", "math.ceil(number * factor)", "number"),
    ),
    Fault(
        "engine.deadline",
        "a deadline cuts devices off only after twice its time",
        "rounds.deadline_s",
        f"{SERVER}::test_a_deadline_cuts_off_late_devices",
        "1e-9 s, 1e-6 of the joules",
        edited(
            "edgefl.engine.federation.stage_run:StageRun._wait",
            "env.timeout(deadline_s)",
            "env.timeout(2 * deadline_s)",
        ),
    ),
    Fault(
        "engine.min_updates",
        "a round with one update too few is aggregated",
        "rounds.min_updates",
        f"{SERVER}::test_too_few_updates_are_not_aggregated",
        "no update, 1e-6 of the joules",
        edited(
            "edgefl.engine.federation.stage_run:StageRun._aggregate",
            "len(ready) < self._rules.min_updates",
            "len(ready) < self._rules.min_updates - 1",
        ),
    ),
    Fault(
        "engine.server_time",
        "the server takes no time to aggregate",
        "rounds.server_s",
        f"{UNIT}federation/test_clock.py::test_the_servers_time_is_part_of_the_latency_and_costs_its_power",
        "1e-9 s, 1e-6 of the joules",
        edited(
            "edgefl.engine.federation.stage_run:StageRun._aggregate",
            "timeout(self._rules.server_s)",
            "timeout(0.0 * self._rules.server_s)",
        ),
    ),
    Fault(
        "engine.report_bits",
        "reports cost no bits",
        "an adaptive session's evidence travels with the updates",
        f"{SERVER}::test_reports_add_to_each_devices_own_bits",
        "no bit",
        edited("edgefl.engine.federation.rounds:Rounds.begin", "bits + self.reports.bits", "bits"),
    ),
    Fault(
        "engine.backhaul_latency",
        "a model's way back from the cloud has no latency",
        "line: latency and bits over rate, each way",
        f"{UNIT}federation/test_cloud.py::test_cells_wait_for_the_last_one",
        "nothing",
        edited(
            "edgefl.engine.federation.cloud:Cloud.exchange",
            "            yield env.timeout(one_way_s)\n        energy_j",
            "            yield env.timeout(bits / settings.backhaul_bps)\n        energy_j",
        ),
    ),
    Fault(
        "engine.cloud_period",
        "a cell exchanges its model a round early",
        "kappa_2 rounds from exchange to exchange",
        f"{UNIT}federation/test_cloud.py::test_a_cell_exchanges_after_every_nth_round",
        "nothing",
        edited(
            "edgefl.engine.federation.cloud:CloudLink.after_round",
            "self._rounds % self._cloud",
            "(self._rounds + 1) % self._cloud",
        ),
    ),
    Fault(
        "engine.adaptive_slack",
        "the evidence of an adaptive session ignores the slack",
        "CUSUM with slack",
        f"{UNIT}test_sessions.py::test_answers_by_hand",
        "nothing",
        edited("edgefl.engine.sessions.adaptive:Adaptive.evidence", "- 1.0 - self.slack", "- 1.0"),
    ),
    Fault(
        "engine.background_load",
        "background traffic offers half its load",
        "load: share of time that files take",
        "tests/theory/test_background_traffic.py::test_a_transfer_is_slowed_by_the_load_of_other_users",
        "4 standard errors of the mean time, and 2 slots of rounding",
        edited(
            "edgefl.engine.air.background:BackgroundTraffic._delay_s",
            "mean_s / load * files",
            "2 * mean_s / load * files",
        ),
    ),
    Fault(
        "engine.power_of_choice",
        "power of choice takes the devices with the lowest loss",
        "Cho, Wang and Joshi, 2022",
        f"{UNIT}test_selectors.py::test_decisions_by_hand",
        "nothing",
        edited(
            "edgefl.engine.selectors.power_of_choice:PowerOfChoice.decide",
            "np.argsort(-loss",
            "np.argsort(loss",
        ),
    ),
    Fault(
        "engine.oort_penalty",
        "Oort does not penalise slow devices",
        "Lai et al., OSDI 2021",
        f"{UNIT}test_oort.py::test_oort_draws_by_the_authors_formulas",
        "1e-9 of each share",
        edited("edgefl.engine.selectors.oort:Oort.decide", "** self.penalty", "** 0.0"),
    ),
)

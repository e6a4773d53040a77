"""Faults of the radio."""

from tests.faults import Fault
from tests.faults.injecting import constant, edited

UNIT, THEORY = "tests/unit/channel/", "tests/theory/test_channel_"
TR = "3GPP TR 38.901"

FAULTS = (
    Fault(
        "channel.breakpoint",
        "the breakpoint lies 1 % farther out",
        f"{TR}, Table 7.4.1-1, note 1",
        f"{UNIT}path_loss/test_umi.py::test_umi_agrees_with_two_simulators",
        edited("channel.path_loss._tr38901:breakpoint_distance_m", "return 4.0", "return 4.04"),
    ),
    Fault(
        "channel.umi_obstructed_slope",
        "UMi without line of sight falls by 35.0 dB a decade in place of 35.3",
        f"{TR}, Table 7.4.1-1",
        f"{UNIT}path_loss/test_umi.py::test_umi_agrees_with_two_simulators",
        edited("channel.path_loss.umi:UMi.lines", "35.3", "35.0"),
    ),
    Fault(
        "channel.uma_decay",
        "UMa's probability of line of sight decays as UMi's",
        f"{TR}, Table 7.4.2-1",
        f"{UNIT}path_loss/test_uma.py::test_los_probability_uma",
        edited("channel.path_loss.uma:UMa.los_probability", "63.0", "36.0"),
    ),
    Fault(
        "channel.los_18_m",
        "line of sight is certain up to 20 m in place of 18 m",
        f"{TR}, Table 7.4.2-1",
        f"{UNIT}path_loss/test_umi.py::test_los_probability_agrees_with_sionna",
        edited(
            "channel.path_loss._tr38901:outdoor_los_probability",
            "return 18.0 / far + np.exp(-far / decay_m) * (1.0 - 18.0 / far)",
            "return np.minimum(1.0, 20.0 / far + np.exp(-far / decay_m) * (1.0 - 20.0 / far))",
        ),
    ),
    Fault(
        "channel.noise_bandwidth",
        "noise is that of half the bandwidth",
        "journal paper, eq. (24)",
        f"{UNIT}test_share.py::test_mean_snr_link_budget",
        edited(
            "channel.share:noise_w", "noise_psd_w_hz * bandwidth * db", "noise_psd_w_hz * bandwidth / 2 * db"
        ),
    ),
    Fault(
        "channel.noise_figure",
        "the noise figure is left out",
        "journal paper, eq. (24), with F",
        f"{UNIT}test_share.py::test_noise_figure_and_interference_margin_raise_the_noise",
        edited(
            "channel.share:noise_w",
            "db_to_linear(noise_figure_db + margin_db)",
            "db_to_linear(0.0 + margin_db)",
        ),
    ),
    Fault(
        "channel.rho_squared",
        "rho of a slot is squared",
        "Jakes, J0(2 pi f_d tau)",
        f"{UNIT}test_fading.py::test_slot_correlation_golden_values",
        edited("channel.fading:slot_correlation", "slot_s=slot_s))", "slot_s=slot_s)) ** 2"),
    ),
    Fault(
        "channel.innovation",
        "the innovation of fading has 1 - rho for its variance in place of 1 - rho^2",
        "Gauss-Markov process of power 1",
        f"{THEORY}fading.py::test_mean_power_is_one",
        edited("channel.fading_grids:grids", "math.expm1(2.0 * log_step)", "math.expm1(log_step)"),
    ),
    Fault(
        "channel.bridge",
        "a block of fading is not tied to its right edge",
        "the law of a Gaussian bridge",
        f"{THEORY}fading.py::test_a_step_across_a_block_edge_is_as_small_as_any_other",
        edited("channel.fading_grids:_bridge_weights", "return sign *", "return 0.0 * sign *"),
    ),
    Fault(
        "channel.shadowing_correlation",
        "shadowing's correlation distance is doubled",
        f"{TR}, 7.4.4",
        f"{THEORY}large_scale.py::test_gain_is_correlated_over_its_states_distance",
        edited(
            "channel.large_scale:_shadowing_correlation_m",
            "return model.correlation_m.los if in_sight else model.correlation_m.nlos",
            "return 2.0 * (model.correlation_m.los if in_sight else model.correlation_m.nlos)",
        ),
    ),
    Fault(
        "channel.shadowing_states_swapped",
        "shadowing with line of sight has the deviation of that without",
        f"{TR}, Table 7.4.1-1",
        f"{THEORY}large_scale.py::test_gain_has_the_states_deviation",
        edited("channel.path_loss:PathLoss.shadowing_std_db", "if line_of_sight", "if not line_of_sight"),
    ),
    Fault(
        "channel.soft_state_wavelength",
        "a soft change of line of sight is as wide as at a quarter of the wavelength",
        f"{TR}, eq. (7.6-18)",
        f"{UNIT}test_large_scale.py::test_a_soft_place_mixes_the_gains_of_both_states_as_7_6_3_3_says",
        edited("channel.sight:soft_state", "20.0 / wavelength_m", "80.0 / wavelength_m"),
    ),
    Fault(
        "channel.ergodic_cap",
        "a cap takes off e^x E1 of the capped SNR without the share that is beyond it",
        "Alouini and Goldsmith, 1999, with a cap",
        f"{UNIT}test_share.py::test_capped_ergodic_rate_is_the_mean_over_fading",
        edited("channel.share:ergodic_rate", "np.exp(-x * top) *", "0.5 * np.exp(-x * top) *"),
    ),
    Fault(
        "channel.cqi_gap",
        "real codes need no more SNR than Shannon",
        "2 dB from Shannon",
        f"{UNIT}test_modulation.py::test_a_rate_is_carried_from_its_snr_on",
        edited("channel.modulation:snr_needed", "float(db_to_linear(gap_db)) *", "1.0 *"),
    ),
    Fault(
        "channel.cqi_table",
        "CQI 7 carries 2.5703 in place of 2.7305 bit/s/Hz",
        "3GPP TS 38.214, Table 5.2.2.1-3",
        f"{UNIT}test_modulation.py::test_the_table_is_bits_per_symbol_times_code_rate",
        constant(
            "channel.modulation:EFFICIENCIES",
            (0.1523, 0.377, 0.877, 1.4766, 1.9141, 2.4063, 2.5703, 3.3223)  # noqa: RUF005
            + (3.9023, 4.5234, 5.1152, 5.5547, 6.2266, 6.9141, 7.4063),
        ),
    ),
    Fault(
        "channel.renewal_spread",
        "renewal's deviation of slots is half of what it is",
        "inverse Gaussian law of a first passage",
        f"{UNIT}test_transfer.py::test_many_renewals_are_one_after_another",
        edited("channel.renewal:slots_renewal_many", "half = 0.5 *", "half = 0.25 *"),
    ),
    Fault(
        "channel.variance_of_slots",
        "rates of different slots count as independent in a transfer's spread",
        "long-run variance of a correlated sequence",
        f"{THEORY}fading.py::test_spread_of_rate_sums_is_the_long_run_variance",
        edited("channel.rates:_variance_table", "pull = 2.0 * pull", "pull = 0.0 * pull"),
    ),
    Fault(
        "channel.first_slot_that_completes",
        "a transfer ends a slot after the one that completes its payload",
        "first passage of the payload",
        f"{UNIT}test_transfer.py::test_slots_exact_is_the_first_slot_that_completes_the_payload",
        edited(
            "channel.transfer:Flow.slots_exact",
            "np.searchsorted(totals, need)) + 1",
            "np.searchsorted(totals, need)) + 2",
        ),
    ),
    Fault(
        "channel.ring_radius",
        "devices are dropped uniformly in distance, not in area",
        "Poisson point process, density 2d / (R^2 - r^2)",
        f"{THEORY}geometry.py::test_distance_has_density_2d_over_the_ring",
        edited(
            "channel.geometry:sample_ring",
            "np.sqrt(inner_radius_m**2 + uniform[:, 0] * (outer_radius_m**2 - inner_radius_m**2))",
            "inner_radius_m + uniform[:, 0] * (outer_radius_m - inner_radius_m)",
        ),
    ),
    Fault(
        "channel.special_slot",
        "a special slot's guard serves the downlink",
        "3GPP TS 38.213, 11.1",
        f"{UNIT}test_tdd.py::test_dddsu_with_special_slot_10_2_2",
        edited(
            "channel.tdd:Pattern.weights",
            'symbols = downlink if direction == "downlink" else uplink',
            'symbols = downlink + _ if direction == "downlink" else uplink',
        ),
    ),
    Fault(
        "channel.proportional_fair_average",
        "proportional fair compares with the square root of what was served",
        "Jalali, Padovani and Pankaj, 2000",
        f"{THEORY}sharing.py::test_proportional_fair_gives_unequal_flows_equal_time",
        edited(
            "channel.schedulers.proportional_fair:ProportionalFair.score",
            "np.maximum(flows.average, NOTHING)",
            "np.sqrt(np.maximum(flows.average, NOTHING))",
        ),
    ),
    Fault(
        "channel.compute_energy",
        "energy of computing goes with the clock, not with its square",
        "kappa C f^2, journal paper",
        f"{UNIT}test_energy.py::test_twice_the_clock_halves_the_time_and_quadruples_the_energy",
        edited("channel.energy:compute_energy_j", "clock_hz**2", "clock_hz"),
    ),
    Fault(
        "channel.path_loss_compensation",
        "power control compensates the whole path loss whatever alpha is",
        "3GPP TS 38.213, 7.1.1",
        f"{UNIT}test_diversity.py::test_partial_compensation_leaves_a_part_of_the_path_loss",
        edited("channel.power_control:share_of_power", "(alpha *", "(1.0 *"),
    ),
    Fault(
        "channel.antenna_beamwidth",
        "a panel's beam falls by 12 (phi / 65)^2 across and not at all along",
        f"{TR}, Table 7.3-1",
        f"{UNIT}test_antenna.py::test_pattern_without_tilt",
        edited("channel.antenna:Panel.gain_dbi", "across_db + along_db", "across_db + 0.0 * along_db"),
    ),
    Fault(
        "channel.glass_share",
        "low-loss walls have as much glass as high-loss ones",
        f"{TR}, Table 7.4.3-2",
        f"{UNIT}test_penetration.py::test_walls_by_hand",
        constant("channel.penetration:GLASS", {"low_loss": 0.7, "high_loss": 0.7}),
    ),
    Fault(
        "channel.packet_errors_of_fading",
        "a packet on a fading link is lost as on a static one",
        "mean of exp(-c / g) over the fading",
        f"{UNIT}test_packet_errors.py::test_the_closed_form_is_the_mean_over_the_fading",
        edited("channel.packet_errors:PacketErrors.arrives", "np.minimum(faded, 1.0)", "np.exp(-c)"),
    ),
    Fault(
        "channel.doppler_halved",
        "the Doppler shift is that of half the speed",
        "f_d = v fc / c",
        f"{UNIT}test_fading.py::test_doppler_of_table_i",
        edited("channel.fading:doppler_hz", "/ SPEED_OF_LIGHT_M_S", "/ (2.0 * SPEED_OF_LIGHT_M_S)"),
    ),
)

"""Keys of earlier versions that were removed, with the reason, or moved to a new section."""

GONE = {
    "algorithm.correction": "use feddyn, which is feddc without the correction",
    "algorithm.decay": "use learning.local.lr_schedule, which works with every algorithm",
    "algorithm.detect": "feddrift always detects drift by the loss",
    "algorithm.gamma": "write learning.local.early_stopping, which sets the threshold for every algorithm",
    "background.indoor_share": "users are now indoors as often as devices",
    "devices.penetration": "write coated_share: 1 for high_loss, 0 for low_loss",
    "devices.vehicle_loss_db": "a car always attenuates by 9 dB, as in 38.901",
    "drift.zones": "name cells instead",
    **dict.fromkeys(
        ("dataset.inputs", "dataset.label", "dataset.group"),
        "write columns: {inputs: x, label: kind, group: person} for columns not named inputs, label or group",
    ),
    "dataset.height": "write size: [height, width]",
    "dataset.width": "write size: [height, width]",
    "dataset.colour": "images are read in colour; convert the files",
    "layout.edge": "hexagons always wrap around; for a world with an edge, list sites and federations",
    "learning.base_model": "devices always hold the frozen parameters",
    "learning.channels_last": "the memory format now follows from model and processor",
    "learning.class_weights": "your own task can weight its classes",
    "learning.client_metrics": "compute such metrics in your own learner or from saved models",
    "learning.label_smoothing": "your own task can smooth its labels",
    "learning.probe_batch": "probes use learning.local.batch",
    "learning.probe_steps": "probes use learning.local.steps or epochs",
    **dict.fromkeys(
        ("local.memory_gb", "learning.memory_gb"),
        "devices trained together now always take at most 5.5 MB on a CPU and 4 GB on a GPU",
    ),
    "mobility.surplus": "if a trace has more devices than devices.count, the first ones are used",
    "mobility.headway_s": "vehicles in a lane are now independent",
    "mobility.centre": "name an area in the rhythm instead of centre, as in to: {market: 0.5}",
    "model.channels": "set the number in arguments, as in_chans: 1; grey images then get a channel axis",
    "model.classes": "the function receives num_classes as an argument",
    "partition.round_overlap": "overlap is no longer rounded; the error about it lists the possible values",
    "path_loss.open_office": "InH is always 38.901's mixed office",
    "budget.path_loss_beam": "devices always measure the path loss in a wide beam",
    "radio.snr_gap_db": "the gap is always 2 dB",
    **dict.fromkeys(
        ("radio.uplink_smallest_part", "link.uplink_smallest_part"),
        "a device always sends on the number of resource blocks that carries the most bits",
    ),
    "radio.server_pa_efficiency": "include the amplifier's loss in server_power_dbm",
    "record.personal_models": "write record.models: personal",
    **dict.fromkeys(
        ("selector.least_power", "selector.least_clock_hz"),
        "fedl now sets any power and clock up to the maximum",
    ),
    "server.at_session_end": "work in progress when a session ends is always aborted",
    **dict.fromkeys(
        ("rhythm.home", "rhythm.work", "rhythm.centre", "rhythm.areas"),
        "write to: {home: 0.2, work: 0.5, centre: 0.2, market: 0.1}; areas are keys like home, work and centre",
    ),
    **dict.fromkeys(
        ("sites.lon", "sites.lat", "sites.azimuth"), "write columns: {lon: X, lat: Y, azimuth: direction}"
    ),
    **dict.fromkeys(
        ("uplink_codec.indices", "downlink_codec.indices"), "an index always takes ceil(log2 M) bits"
    ),
}

# section -> keys that were one level above this section in earlier versions
INTO = {
    "learning.cost": "bits_per_parameter booked flops_per_sample payload",
    "learning.evaluation": "metrics scores_every test_every test_samples tested_on validation",
    "learning.local": "augmentation batch batching clip_norm early_stopping epochs lr lr_floor lr_power lr_schedule"
    " momentum one_pass optimiser partial_work precision probe_lr steps weight_decay",
    "radio.budget": "array_gain_db interference_margin_db noise_dbm_hz noise_figure_db power_over_share"
    " server_power_dbm site_noise_figure_db uplink_alpha uplink_p0_dbm uplink_power_over_share",
    "radio.link": "control_overhead downlink_layers frequency_taps harq_bler max_efficiency protocol_overhead rates"
    " uplink_waterfall_db",
    "radio.monitoring": "coverage_margin_db gain_reading t310_s t311_s",
    "radio.propagation": "line_of_sight los_site_correlation shadowing shadowing_std_db site_correlation",
}
RENAMED = {"test_every": "every", "test_samples": "samples"}
# old section and key -> new path, relative to the old section
MOVED = {
    f"{section}.{key}": f"{inner}.{RENAMED.get(key, key)}"
    for section, inner, keys in ((*place.split("."), keys.split()) for place, keys in INTO.items())
    for key in keys
}

# key of earlier versions -> its present name, in the same section
NEW_NAMES = {
    "algorithm.pull": "mu",
    "churn.absence_s": "off_s",
    "churn.lifetime_s": "on_s",
    "dataset.data_seed": "seed",
    "dataset.pixels": "scale",
    "model.outputs": "targets",
    "privacy.clip": "clip_norm",
    "server.mixing": "alpha",
    "server.period_s": "every_s",
    **dict.fromkeys(("sites.csv", "sites.geojson"), "path"),
    "warm_start.ema_beta": "beta",
}

# name of a component in other programs -> our name
NAMED_ABROAD = {"lr": "logistic", "random": "uniform", "sync": "synchronous"}
# name of a key in other programs -> our key in full
ABROAD = {
    **dict.fromkeys(("batch_size", "minibatch_size"), "learning.local.batch"),
    **dict.fromkeys(("clients_per_round", "fraction_fit", "participation"), "rounds.selector.count"),
    "codec": "learning.uplink_codec or learning.downlink_codec",
    "file": "path",
    "sweep": "grid",
    **dict.fromkeys(("clients", "num_clients"), "devices.count"),
    **dict.fromkeys(("learning_rate", "lr"), "learning.local.lr"),
    **dict.fromkeys(("local_epochs", "num_epochs"), "learning.local.epochs"),
    **dict.fromkeys(("optimizer", "optim"), "learning.local.optimiser"),
    **dict.fromkeys(("aggregation", "aggregator", "strategy"), "learning.algorithm"),
    "compression": "learning.uplink_codec or learning.downlink_codec",
    **dict.fromkeys(("num_rounds", "rounds"), "sessions.rounds"),
    "rounds.count": "sessions.rounds",
    **dict.fromkeys(("target", "target_accuracy"), "stop.accuracy"),
}

"""Keys of earlier versions that are gone for good, and why; keys that stand in a section of their own now."""

GONE = {
    "algorithm.correction": "feddc without it is feddyn",
    "algorithm.decay": "learning.lr_schedule lets the rate fall, whatever the algorithm",
    "algorithm.detect": "feddrift goes by the loss",
    "background.indoor_share": "users are indoors as often as devices",
    "devices.vehicle_loss_db": "a car takes 9 dB, as 38.901 says",
    "downlink_codec.indices": "a place takes ceil(log2 M) bits",
    "learning.base_model": "devices hold what is frozen",
    "learning.channels_last": "it is chosen by model and processor",
    "learning.class_weights": "a task of your own weighs its classes",
    "learning.client_metrics": "read them from a learner of your own, or from models that are kept",
    "learning.label_smoothing": "a task of your own smooths its labels",
    "learning.probe_batch": "probes have learning.batch",
    "learning.probe_steps": "probes have learning.steps or epochs",
    "mobility.headway_s": "vehicles of a lane are independent",
    "model.classes": "a function is told num_classes",
    "partition.round_overlap": "write the overlap that the error names",
    "path_loss.open_office": "InH is 38.901's mixed office",
    "radio.server_pa_efficiency": "raise server_power_dbm by what the amplifier loses",
    "server.at_session_end": "work that is under way then is cut off",
    "uplink_codec.indices": "a place takes ceil(log2 M) bits",
}

# section -> the keys in it that stood beside it in earlier versions
INTO = {
    "radio.propagation": (
        "line_of_sight",
        "shadowing",
        "shadowing_std_db",
        "site_correlation",
        "los_site_correlation",
    ),
    "radio.budget": (
        *("server_power_dbm", "power_over_share", "uplink_power_over_share", "uplink_p0_dbm", "uplink_alpha"),
        *(
            "array_gain_db",
            "noise_dbm_hz",
            "noise_figure_db",
            "site_noise_figure_db",
            "interference_margin_db",
        ),
    ),
    "radio.link": (
        *(
            "rates",
            "max_efficiency",
            "downlink_layers",
            "uplink_smallest_part",
            "snr_gap_db",
            "control_overhead",
        ),
        *("protocol_overhead", "harq_bler", "frequency_taps", "uplink_waterfall_db"),
    ),
    "learning.local": (
        *("steps", "epochs", "batch", "partial_work", "one_pass", "early_stopping", "augmentation"),
        *("lr", "lr_schedule", "lr_power", "lr_floor", "probe_lr", "optimiser", "momentum", "weight_decay", "clip_norm"),
        *("batching", "precision", "memory_gb"),
    ),
    "learning.evaluation": ("validation", "tested_on", "test_samples", "test_every", "metrics", "scores_every"),
    "learning.cost": ("payload", "bits_per_parameter", "booked", "flops_per_sample"),
    "radio.monitoring": ("gain_reading", "t310_s", "t311_s", "coverage_margin_db"),
}
MOVED = {
    f"{place.partition('.')[0]}.{key}": f"{place.partition('.')[2]}.{key}"
    for place, keys in INTO.items()
    for key in keys
}

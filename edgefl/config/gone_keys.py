"""Keys of earlier versions that are gone for good: the section and the key, and why or what stands in its place."""

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

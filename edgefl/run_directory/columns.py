"""The meaning of every column in the tables of a run directory, for `edgefl describe` and the reference page."""

ROUNDS, DEVICES, SESSIONS, EVENTS = "rounds.csv", "devices.csv", "sessions.csv", "events.csv"
LEDGER, POSITIONS, EVALUATION = "ledger.csv", "positions.csv", "evaluation.csv"

_KEYS = {
    "session": "number of the session, from 1",
    "round": "number of the round within its session and phase, from 1",
    "phase": "purpose of the round: train; pilot, in sessions from which warm starts learn; probe, by a warm start",
    "cell": "number of the cell",
    "device": "id of the device, from 0",
    "class": "the device's class, if the scenario has devices.classes",
}
_STALLS = {
    "stalled_s": "seconds without a link while the device wanted to send or receive, if links can fail",
    "stalled_j": "joules spent in this time; part of the joules for receiving and sending",
}
_BITS = {"downlink_bits": "bits that devices received", "uplink_bits": "bits that devices sent"}
_CAUSES = {
    "energy_rx_j": "joules for receiving",
    "energy_tx_j": "joules for sending",
    "energy_compute_j": "joules for computing",
    "energy_tail_j": "joules of radio tails: what a radio draws after a transfer, until the next one or its release",
    "energy_j": "sum of the four joules above; joules of idle devices are only in ledger.csv, as idle_j",
}


def _keys(names: str) -> dict[str, str]:
    return {name: _KEYS[name] for name in names.split()}


# file -> a row's meaning, and column -> meaning
COLUMNS_OF: dict[str, tuple[str, dict[str, str]]] = {
    ROUNDS: (
        "a row for each round; if rounds overlap, for each model",
        {
            **_keys("session round phase cell"),
            "version": "how many models the cell's server has made so far, this one included",
            "start_s": "simulated time at which the round began",
            "end_s": "simulated time at which its model was made",
            "latency_s": "end_s minus start_s: how long the round took",
            "latency_mean_s": "mean over participants of the time until a device's part ended",
            "participants": "devices that took part",
            "completed": "participants with an update that arrived",
            **_BITS,
            **_CAUSES,
            "energy_wasted_j": "part of energy_j that was spent on updates that were not aggregated",
            "energy_server_j": "joules of base station and server; not part of energy_j",
            "energy_backhaul_j": "joules of the backhaul, if there is a cloud; not part of energy_j",
            "energy_excess_j": "joules above the least for the same work in the same time, by record.energy_excess",
            "accuracy": "share of test samples (0 to 1) that the new model classifies correctly, or the task's score",
            "loss": "mean loss of the new model on the test samples",
            "accuracy_validation": "accuracy on the validation samples, if there are any",
            "loss_validation": "loss on the validation samples, if there are any",
            "accuracy_std": "standard deviation of the accuracy over devices, if devices have tests of their own",
            "accuracy_by_samples": "mean accuracy over the test samples of all devices",
            "accuracy_worst_tenth": "mean accuracy over the tenth of the devices with the lowest",
            "accuracy_personal": "mean accuracy of the devices' own models on their own tests",
            "accuracy_personal_std": "standard deviation of accuracy_personal over devices",
            "accuracy_personal_by_samples": "mean of accuracy_personal over test samples",
            "top5": "share of test samples with a label among the model's five most likely labels",
            "macro_f1": "mean over labels of F1 on the test samples",
            "auc": "mean over labels of the area under the ROC curve, each label against the others",
            "perplexity": "exponential of the loss",
            "drifted": "share of the present devices whose data have drifted",
            "out_of_coverage": "devices in the cell without a link at the round's start, if coverage is limited",
            "connecting": "devices that were reconnecting when the round was due, if links can fail",
            "staleness_mean": "mean number of models made between a device's start and its update's use",
            "staleness_max": "largest such number",
            "working": "devices still at work when the model was made, if rounds overlap",
            "cloud_version": "the cloud's model that the cell received after the round",
            "cloud_wait_s": "seconds that the cell waited for other cells at the cloud",
            "backhaul_s": "seconds of the exchange over the backhaul",
            "backhaul_bits": "bits of the exchange over the backhaul",
            "theory_lr": "the round's learning rate; this and the columns below by learning.theory",
            "theory_loss": "loss F of the model from which the round started, on the participants' data",
            "theory_loss_after": "loss F of the model that the round made, on the same data",
            "theory_gradient2": "squared length of F's gradient at the start model",
            "theory_gradient2_devices": "mean, by samples, of the squared length of each device's own gradient",
            "theory_smoothness": "a lower bound of the smoothness constant of the devices' losses",
            "theory_noise_steps": "gradient noise of all local steps, by samples",
            "theory_noise_drift": "gradient noise of all local steps after the first, by samples",
            "theory_steps_min": "fewest local steps of a participant",
            "theory_steps_max": "most local steps of a participant",
        },
    ),
    DEVICES: (
        "a row for each participant of each round; empty where the device did not get that far",
        {
            **_keys("session round phase cell device class"),
            "distance_m": "metres between the device and its site when the round began",
            "access_s": "seconds before the two transfers in which the device only got access to the band",
            **{
                f"{what}_{end}_s": f"simulated time at which the {name} {verb}"
                for what, name in (("downlink", "download"), ("compute", "training"), ("uplink", "upload"))
                for end, verb in (("start", "began"), ("end", "ended"))
            },
            "iterations": "local steps",
            **_BITS,
            **_CAUSES,
            "outcome": "how the device's part ended; each value is on the page Run directory",
            **_STALLS,
            "link_failures": "link failures during the two transfers",
            "dispatch": "number of the dispatch in which the device was sent out, if rounds overlap",
            "version": "model from which the device started, if rounds overlap",
            "staleness": "models made between the device's start and the use of its update, if rounds overlap",
            "epochs": "passes over the device's samples, with early stopping",
            "cluster": "number of the model that the device chose, if an algorithm has several",
            "lowest_loss": "loss of that model on the device's data",
            "loss_received": "loss of the received model on the device's data, if a policy or selector asks for it",
            "update_norm": "length of the device's update, if a selector asks for it",
            "epsilon": "privacy spent by the device so far, with learning.privacy",
            "accuracy_personal": "accuracy of the device's own model on its own tests, right after its training",
            "test_samples": "number of the device's own test samples",
        },
    ),
    SESSIONS: (
        "a row for each session of a cell, written when its training begins",
        {
            **_keys("session cell"),
            "start_s": "simulated time at which the session began",
            "reason": "why the session began",
            "devices": "ids of the devices present at the start",
            "labels": "labels that these devices have",
            "warm_start": "component that constructed the opening model; empty in pilot sessions",
            "weights": "earlier session:weight, for each model in the opening model",
            "accuracy_start": "accuracy of the opening model",
            "loss_start": "loss of the opening model",
        },
    ),
    EVENTS: (
        "a row for each event of a device or of a cell's session",
        {
            **_keys("device session cell"),
            "time_s": "simulated time of the event",
            "event": "kind of event; each value is on the page Run directory",
            "from_cell": "of handovers: the previous cell",
            "stay_s": "of handovers: seconds for which the previous cell served the device",
            "interruption_s": "of handovers and reestablished links: seconds without any cell",
            "detail": "further facts, such as why a session began or ended",
        },
    ),
    LEDGER: (
        "a row for each device, with its joules over the whole run",
        {
            **_keys("device class"),
            "receive_j": "joules for receiving",
            "transmit_j": "joules for sending",
            "compute_j": "joules for computing",
            "tail_j": "joules of radio tails",
            "energy_j": "joules caused by learning: the sum of the four above",
            "idle_j": "joules while the device is on, without activity or tail",
            "total_j": "energy_j plus idle_j; with a battery, capacity plus recharged_j minus left_j",
            "wasted_j": "part of energy_j that was spent on updates that were not aggregated",
            "recharged_j": "joules that the battery took in; empty without a battery",
            "left_j": "joules left in the battery at the end; empty without a battery",
            "circuit_j": "part of transmit_j of the radio's circuits besides the amplifier",
            **_STALLS,
        },
    ),
    POSITIONS: (
        "a row for each present device at each sampling time",
        {
            **_keys("device cell"),
            "time_s": "simulated time",
            "x_m": "metres east of the origin",
            "y_m": "metres north of the origin",
            "gain_db": "large-scale gain of the link to the serving cell in dB, with walls",
            "sinr_db": "mean downlink SINR in dB of a device that has the whole band",
        },
    ),
    EVALUATION: (
        "a row for each device in rounds set by learning.evaluation.scores_every",
        {
            **_keys("session round phase cell device"),
            "end_s": "simulated time at which the round's model was made",
            "samples": "number of the device's own test samples",
            "accuracy": "accuracy of the model that serves the device, on the device's own tests",
            "loss": "loss of this model",
            "accuracy_personal": "accuracy of the device's own model",
            "loss_personal": "loss of the device's own model",
        },
    ),
}


def tables_with(column: str) -> dict[str, str]:
    """Return each table that may have a column, with the column's meaning there."""
    return {file: columns[column] for file, (_, columns) in COLUMNS_OF.items() if column in columns}

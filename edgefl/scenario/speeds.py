"""Check that no device is too fast for the slots of the radio."""

import numpy as np

from edgefl.channel.fading import speed_limit_m_s
from edgefl.engine.air.radio_settings import RadioSettings
from edgefl.engine.devices.fleet import Fleet
from edgefl.errors import EdgeflError
from edgefl.mobility import Movement
from edgefl.mobility._traces._speeds import TRAIN_M_S

SHORTEST_S = next(limit.ge for limit in RadioSettings.model_fields["slot_s"].metadata if hasattr(limit, "ge"))


def doppler_speeds_m_s(movement: Movement, fleet: Fleet, radio: RadioSettings) -> np.ndarray:
    """Return the speeds [devices] that set the Doppler shift of the devices' links.

    Raises:
        EdgeflError: a device is too fast for the fading model; the error is about the key that sets its speed, or
            about slot_s if the scenario does not set the speed.
    """
    speeds_m_s = movement.doppler_speeds_m_s()
    device = int(speeds_m_s.argmax())
    speed_m_s = float(speeds_m_s[device])
    limit_m_s = speed_limit_m_s(carrier_hz=radio.carrier_hz, slot_s=radio.slot_s)
    if speed_m_s < limit_m_s:
        return speeds_m_s
    mobility = fleet.kinds[int(fleet.of[device])].mobility
    place = fleet.first_with("mobility", mobility)[1]
    recorded = getattr(movement, "recorded", None)
    name = f"device {device} (id {recorded[device].id})" if recorded else f"device {device}"
    if mobility.recorded:
        name = f"{mobility.path}: {name}"
    key, remedy = mobility.slower(".".join(place))
    remedy = getattr(movement, "wrong_rows", "") or remedy
    slot_s = radio.slot_s * limit_m_s / speed_m_s
    further = (
        f", or set radio.slot_s below {slot_s:.3g}" if slot_s > SHORTEST_S and speed_m_s <= TRAIN_M_S else ""
    )
    raise EdgeflError(
        f"{name} moves at {speed_m_s:,.4g} m/s, but slots of {radio.slot_s:g} s at"
        f" {radio.carrier_hz / 1e9:g} GHz need less than {limit_m_s:.3g} m/s, so that the fading of consecutive slots"
        f" is correlated: {remedy}{further}",
        ("radio", "slot_s")
        if key and key not in mobility.model_fields_set
        else (*place, *filter(None, [key])),
    )

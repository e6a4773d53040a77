"""Check the contracts of schedulers and path-loss models, the components of the channel."""

import copy
from functools import partial

import numpy as np

from edgefl.channel.carrier import Carrier
from edgefl.channel.path_loss import PathLoss
from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.testing.conformance import must, must_repeat, pure, same

CARRIER = Carrier(10e6, 0.5e-3)
CASES, MOST_FLOWS = 20, 8
ROUNDING = 1e-9  # tolerance of a sum of shares
EVERYWHERE_M = (10.0, 100.0)  # valid range of all models, including indoor ones
DROP_DB = 1e-6  # tolerance of a loss that must not fall with distance


def schedulers(scheduler: Scheduler) -> None:
    """Check that shares of the band are not negative, sum to at most 1, and depend on the flows only."""
    rng = np.random.default_rng(1)
    for _ in range(CASES):
        count = int(rng.integers(1, MOST_FLOWS + 1))
        flows = Flows(
            CARRIER,
            snr=10 ** rng.uniform(0, 6, count),
            remaining_bits=rng.uniform(1e3, 1e7, count),
            slot=int(rng.integers(1000)),
            efficiency=rng.uniform(0.1, 20, count),
            average=rng.uniform(0.1, 20, count),
            airtime=rng.uniform(0, 50, count),
        )
        lent = copy.deepcopy(flows)
        shares = scheduler.shares(flows)
        for name in ("snr", "remaining_bits", "efficiency", "average", "airtime"):
            unchanged = same(getattr(lent, name), getattr(flows, name))
            must(unchanged, f"shares() modified flows.{name}: work on a copy")
        must(
            isinstance(shares, np.ndarray) and shares.shape == (count,),
            f"shares() must return a NumPy array with one share for each of {count} flows: {shares}",
        )
        must(bool(np.all(shares >= 0)), f"a share is negative: {shares}")
        must(
            0 < shares.sum() <= 1 + ROUNDING,
            f"shares must sum to at most the whole band, and must not all be 0: {shares}",
        )
        must_repeat("shares()", shares, scheduler.shares(flows), "keep no state; use the state in Flows")


def path_loss(model: PathLoss) -> None:
    """Check that path loss is finite, and not less at longer distances or without LoS; check the LoS probability."""
    must(
        type(model).path_loss_db is PathLoss.path_loss_db,
        "a run computes the loss from lines(), not by path_loss_db(): define the loss in lines()",
    )
    distance_m = np.geomspace(*EVERYWHERE_M, 60)
    heights_m = {"bs_height_m": model.bs_height_m, "ut_height_m": model.ut_height_m}
    los_db, nlos_db = (
        np.asarray(
            pure(
                "path_loss_db()",
                partial(model.path_loss_db, carrier_hz=3.5e9, line_of_sight=in_sight, **heights_m),
                distance_m,
                remedy="draw no random numbers; shadowing is added to it",
            )
        )
        for in_sight in (True, False)
    )
    for loss_db in (los_db, nlos_db):
        must(loss_db.shape == distance_m.shape, "path_loss_db must return a number for each distance")
        must(
            bool(np.all(np.isfinite(loss_db))),
            "path_loss_db must be finite from 10 to 100 m",
        )
        must(bool(np.all(np.diff(loss_db) > -DROP_DB)), "path loss must not fall with distance")
    must(
        bool(np.all(nlos_db >= los_db - DROP_DB)),
        "path loss without line of sight must not be less than with it",
    )
    remedy = "draw no random numbers; the state of a link is drawn with this probability"
    probability = np.asarray(pure("los_probability()", model.los_probability, distance_m, remedy=remedy))
    must(probability.shape == distance_m.shape, "los_probability must return a number for each distance")
    must(bool(np.all((probability >= 0) & (probability <= 1))), "los_probability must be between 0 and 1")

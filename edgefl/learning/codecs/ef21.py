"""Send the difference between a device's change and its previous change."""

from collections.abc import Mapping

from pydantic import Field

from edgefl.learning.codecs import Chance, Codec, Coded, Contraction, Sizes, index_bits
from edgefl.learning.codecs.top_k import kept, largest
from edgefl.learning.tensors import Tensor

ESTIMATE = "estimate"


class Ef21(Codec):
    """Keep an estimate of each device's change at both ends, and send the values that differ most from the estimate.

    g_k+ = g_k + top-k of (change - g_k), which the server uses as the change; values are sent uncompressed.
    Richtarik, Sokolov, Fatkhullin, EF21, NeurIPS 2021. g_k is the estimate after the device's last aggregated update.
    With share 1, results are the same as without a codec, bit for bit; on the downlink, EF21 is the same as top_k.
    """

    share: float = Field(0.1, gt=0, le=1, description="share of the values to send; at least one is sent")

    def memory(self, sizes: Sizes) -> Mapping[str, int]:
        return {ESTIMATE: sizes.count}

    def encode(self, change: Tensor, memory: Mapping[str, Tensor], rng: Chance, sizes: Sizes) -> Coded:
        known = memory[ESTIMATE]
        chosen = largest((change - known).abs(), kept(self.share, sizes))
        rows = change.where(chosen, known)
        bits = chosen.sum(1) * sizes.bits + index_bits(chosen, sizes)
        return Coded(rows, bits, {ESTIMATE: rows})

    def distortion(self, sizes: Sizes) -> Contraction:
        return Contraction(kept(self.share, sizes) / sizes.count)

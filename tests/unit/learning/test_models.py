"""Test models: the papers' parameter counts, FLOPs by the layers' shapes and by PyTorch, and modules' contract."""

from math import prod

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from edgefl.commands.descriptions import describe
from edgefl.config import registry
from edgefl.learning.algorithms.moon import Moon
from edgefl.learning.local.cost import flops_per_sample
from edgefl.learning.models import Model, OutputTerm, mlp2
from edgefl.learning.models.lstm import Lstm, _LstmLayers
from edgefl.learning.models.mlp2 import Mlp2
from edgefl.learning.models.svhn_cnn import SvhnCnn
from edgefl.learning.models.text_bag import TextBag
from edgefl.learning.modules.parameters import TensorLayout
from edgefl.learning.objective import CLASSIFICATION
from edgefl.learning.warm_starts.continuous import Continuous
from edgefl.testing.learning_contracts import _derived_gradients
from tests.refusals import refused_at
from tests.tools.constants import with_constants
from tests.tools.forked import loaded_after

SEED = 3
ROUNDING = 2e-5  # relative error of float32 sums of some thousand terms in a different order
# the papers' models: name, keys, input shape, classes, trainable parameters
COUNTS = [
    ("logistic", {}, (28, 28), 10, 7_850),  # J Table I
    ("svhn_cnn", {}, (3, 32, 32), 10, 667_178),
    ("resnet18", {}, (3, 32, 32), 10, 11_573_066),
    ("resnet18", {}, (3, 32, 32), 100, 11_596_196),
    ("resnet34", {}, (3, 64, 64), 200, 21_730_056),
    ("text_bag", {}, (128,), 4, 9_157_804),
    # I listing 2: convolutions (3 32 + 32 64 + 64 128) 9 + 224, then 2,048 256 + 256 and 256 10 + 10
    ("svhn_cnn", {"variant": "early"}, (3, 32, 32), 10, 620_362),
    # Reddi et al. 2021, by layer as counted in Keras
    ("cnn2", {}, (28, 28), 62, 320 + 18_496 + 1_179_776 + 7_998),
    ("lstm", {}, (80,), 90, 720 + 271_360 + 525_312 + 23_130),
    ("mlp2", {}, (60,), 10, 60 * 128 + 128 + 128 * 10 + 10),
    ("lenet", {}, (28, 28), 10, 44_426),
    ("mlp", {}, (28, 28), 10, 199_210),  # McMahan et al. 2017, section 3: "MNIST 2NN"
]


def build(name: str, **parameters: object) -> tuple[type[Model], nn.Module]:
    """Return a model, and its module for the paper's samples and classes."""
    model = registry.get("models", name)
    torch.manual_seed(SEED)
    return model, model(**parameters).build(model.typical_input, model.typical_classes)


@pytest.mark.parametrize(("name", "parameters", "shape", "classes", "count"), COUNTS)
def test_trainable_parameters_are_those_of_the_papers(
    name: str, parameters: dict[str, object], shape: tuple[int, ...], classes: int, count: int
) -> None:
    module = registry.get("models", name)(**parameters).build(shape, classes)
    assert TensorLayout.of(module).size == count


@pytest.mark.parametrize(("name", "count"), [("logistic", 7_850), ("cnn2", 1_206_590)])
def test_describe_prints_the_count_of_the_papers(name: str, count: int) -> None:
    """`describe` prints the papers' count for a model with a formula and for a model that must be built."""
    assert f"parameters: {count:,}\n" in describe(f"models/{name}")


def test_image_models_take_grey_images() -> None:
    """With grey images, only the first convolution lacks two channels: 2 x 9 x 32 or 2 x 49 x 64 weights."""
    for name, fewer in (("svhn_cnn", 2 * 9 * 32), ("resnet18", 2 * 49 * 64)):
        grey, colour = (registry.get("models", name)().build(shape, 10) for shape in ((32, 32), (3, 32, 32)))
        assert TensorLayout.of(colour).size - TensorLayout.of(grey).size == fewer
        assert grey.eval()(torch.zeros(2, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize("name", [name for name in registry.names("models") if name != "factory"])
def test_logits_are_the_head_of_the_features_but_of_logistic_regression(name: str) -> None:
    model, module = build(name, **({"vocabulary": 80} if name == "text_bag" else {}))
    assert hasattr(module.eval(), "head") == (name != "logistic")
    if name != "logistic":
        x = torch.rand(2, *model.typical_input) * (1 if len(model.typical_input) > 1 else 80)
        assert module.features(x).shape == (2, module.head.in_features)
        assert torch.equal(module(x), module.head(module.features(x)))
        assert module.head.out_features == model.typical_classes


@pytest.mark.parametrize("name", ["svhn_cnn", "cnn2"])
def test_dropout_is_of_training_only(name: str) -> None:
    model, module = build(name)
    x = torch.randn(4, *model.typical_input)
    with torch.no_grad():
        assert not torch.equal(module(x), module(x))
        module.eval()
        torch.testing.assert_close(module(x), module(x), rtol=0, atol=0)


def conv_flops(inputs: int, filters: int, kernel: int, pixels: int) -> int:
    """Return the FLOPs of one forward pass; pixels: number of output pixels."""
    return 2 * inputs * filters * kernel**2 * pixels


def three_passes(layers: list[int]) -> int:
    """Sum the FLOPs of the forward pass, and of gradients by weights and by inputs (except the first layer's)."""
    return 3 * sum(layers) - layers[0]


FLOPS = {
    "logistic": [2 * 784 * 10],
    "mlp2": [2 * 60 * 128, 2 * 128 * 10],
    "mlp": [2 * 784 * 200, 2 * 200 * 200, 2 * 200 * 10],
    "text_bag": [0, 2 * 300 * 4],  # only the head
    "cnn2": [conv_flops(1, 32, 3, 26**2), conv_flops(32, 64, 3, 24**2), 2 * 64 * 12**2 * 128, 2 * 128 * 62],
    "svhn_cnn": [
        conv_flops(3, 32, 3, 32**2),
        conv_flops(32, 32, 3, 32**2),
        conv_flops(32, 64, 3, 16**2),
        conv_flops(64, 64, 3, 16**2),
        conv_flops(64, 128, 3, 8**2),
        2 * 2048 * 256,
        2 * 256 * 10,
    ],
}


@pytest.mark.parametrize("name", FLOPS)
def test_flops_follow_from_the_shapes(name: str) -> None:
    model, module = build(name)
    assert flops_per_sample(module, model.typical_input) == three_passes(FLOPS[name])
    assert module.training, "counting does not change the module's mode"


def test_flops_of_the_lstm_are_those_of_its_gates() -> None:
    """Per character, layers multiply by [inputs, 4 hidden] and [hidden, 4 hidden]; the zero state has no gradient."""
    model, module = build("lstm")
    characters, hidden = 80, 256
    inputs = 2 * 4 * hidden * (8 + hidden)
    recurrent = 2 * 4 * hidden * hidden
    passes = 3 * characters * inputs + 2 * (3 * characters - 1) * recurrent
    assert flops_per_sample(module, model.typical_input) == passes + 3 * 2 * hidden * 90


def test_svhn_cnn_has_the_flops_of_the_journal_paper() -> None:
    """Table I has 91.04 FLOPs per parameter in a forward pass (2.00 for a linear layer).

    Products alone are 2 % fewer. The rest is element-wise work: some 12 FLOPs for bias, batch norm and rectifier
    at each of 106,496 outputs of convolutions.
    """
    table = 91.04 * 667_178
    products = sum(FLOPS["svhn_cnn"])
    outputs = 2 * 32 * 32**2 + 2 * 64 * 16**2 + 128 * 8**2
    assert 0 < table - products < 13 * outputs


def test_the_lstm_is_pytorchs() -> None:
    torch.manual_seed(SEED)
    ours, theirs = _LstmLayers(5, 7), nn.LSTM(5, 7, num_layers=2, batch_first=True)
    with torch.no_grad():
        for layer in (0, 1):
            own = ours.weights[3 * layer : 3 * layer + 3]
            for name, weight in zip(("weight_ih", "weight_hh", "bias_ih"), own, strict=True):
                getattr(theirs, f"{name}_l{layer}").copy_(weight)
            getattr(theirs, f"bias_hh_l{layer}").zero_()
        x = torch.randn(3, 11, 5)
        torch.testing.assert_close(ours(x), theirs(x)[0][:, -1], rtol=ROUNDING, atol=1e-6)


def test_the_lstm_remembers_at_first() -> None:
    """The LSTM's forget gate has an initial bias of about 1, and its other gates have biases of about 0."""
    hidden = 400
    bias = _LstmLayers(5, hidden).weights[2].detach().unflatten(0, (4, hidden))
    # tolerance for means of 400 values uniform within +-1/20
    tolerance = 4 * (1 / 20) / 3**0.5 / hidden**0.5
    assert ((bias.mean(1) - torch.tensor([0.0, 1.0, 0.0, 0.0])).abs() < tolerance).all()


def test_the_lstm_reads_in_order() -> None:
    module = Lstm(hidden=16).build((6,), 4).eval()
    x = torch.tensor([[1, 2, 3, 4, 5, 6], [2, 1, 3, 4, 5, 6]])
    logits = module(x)
    assert not torch.allclose(logits[0], logits[1])


def test_the_text_bag_is_a_mean_without_padding() -> None:
    module = with_constants(TextBag, width=4)(vocabulary=9).build((5,), 3)
    table, head = module.features.weight, module.head
    texts = torch.tensor([[3, 7, 0, 0, 0], [0, 3, 0, 7, 0], [5, 5, 8, 0, 0], [0, 0, 0, 0, 0]])
    bags = torch.stack(
        [(table[3] + table[7]) / 2, (table[3] + table[7]) / 2, (2 * table[5] + table[8]) / 3, torch.zeros(4)]
    )
    torch.testing.assert_close(module(texts), head(bags), rtol=ROUNDING, atol=1e-6)
    torch.testing.assert_close(module(texts.float()), module(texts), rtol=0, atol=0)


DEVICES, BATCH, CLASSES = 3, 4, 3
SILENT = "features.1.bias"  # has zero gradient, as the rectifier's inputs are negative


def written_out(
    model: Model, shape: tuple[int, ...], x: Tensor
) -> tuple[nn.Module, TensorLayout, list[Tensor]]:
    """Return a module, its layout, and models, inputs, labels and weights of three devices.

    One sample of one device is padding.
    """
    torch.manual_seed(SEED)
    module = model.build(shape, CLASSES)
    layout = TensorLayout.of(module)
    rows, weight = torch.randn(DEVICES, layout.size), torch.rand(DEVICES, BATCH)
    if SILENT in layout.names:
        layout.views(rows)[SILENT][0, 0] = -100.0
    weight[1, 2] = 0
    return module, layout, [rows, x, torch.randint(0, CLASSES, (DEVICES, BATCH)), weight]


TEXTS = torch.randint(0, 11, (DEVICES, BATCH, 5), generator=torch.Generator().manual_seed(SEED)).float()
TEXTS[0, 0] = 0  # a text of padding only
IMAGES = torch.randn(DEVICES, BATCH, 5, 2, generator=torch.Generator().manual_seed(SEED))


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # vmap cannot batch an embedding bag
@pytest.mark.parametrize(
    ("model", "x", "copied_up_to", "still"),
    [
        (with_constants(TextBag, width=6)(vocabulary=11), TEXTS, 0, "features.weight"),  # padding: not a word
        # neither matrix, only the smaller matrix, or both are copied into place
        *((Mlp2(hidden=6), IMAGES, copied, "features.1.weight") for copied in (0, 6 * 3, 1000)),
    ],
)
def test_gradients_that_are_written_out_are_those_of_autograd(
    model: Model, x: Tensor, copied_up_to: int, still: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlp2, "COPIED_UP_TO", copied_up_to)
    module, layout, at = written_out(model, tuple(x.shape[2:]), x)
    own, reference = model.gradients(module, layout, *at), Model.gradients(model, module, layout, *at)
    torch.testing.assert_close(own, reference, rtol=ROUNDING, atol=1e-6)
    moved = layout.views(own)[still]
    assert not (moved[:, 0] if still == "features.weight" else moved[0, 0]).any()


@pytest.mark.parametrize("names", ["moon", "continuous", "moon continuous"])
def test_the_two_layers_own_gradients_know_further_terms_of_the_loss(names: str) -> None:
    """The two-layer model's own gradients agree with float64 autograd, whose rounding is negligible."""
    inputs, hidden = (5, 2), 6
    model = Mlp2(hidden=hidden)
    module, layout, (rows, x, y, weight) = written_out(model, inputs, IMAGES.clone())
    previous, received = torch.randn(DEVICES, layout.size), torch.randn(layout.size)

    def terms(kind: torch.dtype) -> list[OutputTerm]:
        found = {
            "moon": Moon(mu=1.3, tau=0.5).term(received.to(kind), previous.to(kind)),
            "continuous": Continuous(coefficient=0.8).anchor(
                received.to(kind), torch.tensor([True, False, True])
            ),
        }
        return [term for name in names.split() if (term := found[name]) is not None]

    def exact(terms: list[OutputTerm]) -> Tensor:
        return _derived_gradients(module, layout, rows.double(), x.double(), y, weight.double(), terms)

    expected = exact(terms(torch.float64))
    own = model.gradients(module, layout, rows, x, y, weight, terms(torch.float32))
    # number of roundings of a number, each by half an eps: in sums over inputs, over the hidden layer and the classes
    # forward and back, over the batch, and in some twenty element-wise operations
    rounded = prod(inputs) + 2 * hidden + 2 * CLASSES + BATCH + 20
    tolerance = rounded * torch.finfo(torch.float32).eps * float(expected.abs().max())
    assert float((own - expected).abs().max()) < tolerance
    assert not layout.views(own)["features.1.weight"][0, 0].any()
    # the terms are larger than rounding, and padding contributes nothing
    assert float((exact([]) - expected).abs().max()) > 1000 * tolerance
    x[1, 2] = 100.0
    again = model.gradients(module, layout, rows, x, y, weight, terms(torch.float32))
    torch.testing.assert_close(again, own, rtol=0, atol=tolerance)
    # without the last device, the other devices have the same results
    fewer = [term.part(slice(2)) for term in terms(torch.float32)]
    alone = model.gradients(module, layout, rows[:2], x[:2], y[:2], weight[:2], fewer)
    torch.testing.assert_close(alone, own[:2], rtol=0, atol=tolerance)


def test_the_early_svhn_cnn_is_the_listing() -> None:
    """The early SVHN CNN equals listing 2 of I, the early version; the order of pooling and ReLU does not matter."""
    torch.manual_seed(SEED)
    module = SvhnCnn(variant="early").build((3, 32, 32), 10).eval()
    conv1, conv2, conv3, fc1 = (
        layer for layer in module.features if isinstance(layer, nn.Conv2d | nn.Linear)
    )
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        out = functional.relu(functional.max_pool2d(conv1(x), 2))
        out = functional.relu(functional.max_pool2d(conv2(out), 2))
        out = functional.relu(functional.max_pool2d(conv3(out), 2))
        expected = module.head(functional.relu(fc1(out.view(2, -1))))
        torch.testing.assert_close(module(x), expected, rtol=ROUNDING, atol=1e-6)


def test_batch_norm_keeps_running_statistics() -> None:
    for name in ("svhn_cnn", "resnet18"):
        _, module = build(name)
        norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
        assert norms
        assert all(norm.affine and norm.track_running_stats for norm in norms)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("resnet18", (80,)),
        ("svhn_cnn", (7, 28)),
        ("cnn2", (3, 5, 9)),
        ("text_bag", (28, 28)),
        ("lstm", (3, 32, 32)),
    ],
)
def test_data_of_another_kind_are_refused(name: str, shape: tuple[int, ...]) -> None:
    with refused_at("learning.model", list(shape)):
        registry.get("models", name)().build(shape, 10)


class Attentive(nn.Module):
    """A model with attention and a recurrent layer, whose operations PyTorch counts in parts."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.memory = nn.LSTM(8, 8, batch_first=True)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.memory(self.encoder(x))[0].mean(1))


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), (1, 8, 8)),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3)), (1, 8, 8)),
        (Attentive(), (5, 8)),
    ],
    ids=["logistic", "convolution", "attention"],
)
def test_flops_are_those_of_pytorchs_counter(module: nn.Module, shape: tuple[int, ...]) -> None:
    own = flops_per_sample(module, shape)
    module.eval()
    with FlopCounterMode(display=False) as counter, torch.backends.mkldnn.flags(enabled=False):
        CLASSIFICATION.loss(
            module(torch.zeros(1, *shape)), torch.zeros(1, dtype=torch.long), "mean"
        ).backward()
    assert own == counter.get_total_flops() > 0


def test_flops_are_counted_where_the_model_is() -> None:
    """The sample must be on the model's device, as models on `meta`, without memory, refuse other tensors."""
    assert flops_per_sample(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).to("meta"), (4,)) == 32


def test_flops_are_counted_without_a_compiler() -> None:
    """Counting must not import the compiler, which would take 1.3 s in every process of a study."""
    code = (
        "from torch import nn; from edgefl.learning.local.cost import flops_per_sample;"
        "assert flops_per_sample(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), (4,)) == 32"
    )
    assert loaded_after(code, {"torch._dynamo"}) == set()

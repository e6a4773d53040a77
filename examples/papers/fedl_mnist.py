"""Repeat the FedAvg run of FEDL's authors on MNIST: python -m edgefl.examples.papers.fedl_mnist

github.com/CharlieDinh/FEDL_pytorch has one results file, Mnist_FedAvg_0.005_0.2_15_10u_20b_20_avg.h5: FedAvg at rate
0.005, ten users a round, batches of 20, 20 passes. The output is the accuracy in percent, averaged over the 20 rounds
up to rounds 50 and 80. The authors test on a quarter of each user's own data; we test on MNIST's test set. The
authors standardise inputs per pixel; we use a single mean and standard deviation. The amounts of data of the authors'
users differ more.
"""

import sys
from statistics import mean
from tempfile import TemporaryDirectory

import edgefl

SEEDS = (100,)
ROUNDS, WINDOW = (50, 80), 20


def main() -> None:
    """Print the accuracies as a table of comma-separated values."""
    found = []
    for seed in SEEDS:
        described = edgefl.load_scenario("scenarios/benchmarks/fedl_mnist.yaml").with_(
            seed=seed, learning__algorithm="fedavg", learning__local__lr=0.005, sessions__rounds=ROUNDS[-1]
        )
        with TemporaryDirectory() as folder:
            rounds = edgefl.simulate(described, out=f"{folder}/run", progress=False, threads=1).rounds
        accuracy = 100 * rounds["accuracy"].to_numpy()
        found.append([float(accuracy[end - WINDOW : end].mean()) for end in ROUNDS])
        print(found[-1], file=sys.stderr, flush=True)
    print("setting,variant,ours,ours_std,seeds")
    for end, values in zip(ROUNDS, zip(*found, strict=True), strict=True):
        print(f"round {end},fedavg,{mean(values):.3f},,{len(SEEDS)}")


if __name__ == "__main__":
    main()

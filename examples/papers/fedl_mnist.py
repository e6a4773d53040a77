"""FedAvg of the authors' FEDL file on MNIST: python -m edgefl.examples.papers.fedl_mnist

github.com/CharlieDinh/FEDL_pytorch has one file of results, Mnist_FedAvg_0.005_0.2_15_10u_20b_20_avg.h5: FedAvg at
rate 0.005, ten users a round, batches of 20, 20 passes. Written: accuracy in percent, means of the 20 rounds up to
rounds 50 and 80. Theirs is on the users' own test data, a quarter of what each holds; ours is on MNIST's. Their
inputs are standardised by pixel, ours by one mean and standard deviation. The users' sizes follow a more uneven law.
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

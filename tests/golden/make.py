"""Regenerate the golden runs: run each scenario below this folder and keep its tables.

A different number means that the program's results have changed, so the tables may only be rewritten in a commit
whose CHANGELOG entry states the old and new numbers over the same seeds. Tables with new columns are written the same
way; they need no entry if all other numbers are unchanged.
"""

import tempfile
from pathlib import Path

import edgefl

HERE = Path(__file__).parent


def changed(folder: Path) -> list[Path]:
    """Run a folder's scenario, write its tables, and return those that changed."""
    with tempfile.TemporaryDirectory() as scratch:
        scenario = edgefl.load_scenario(folder / "scenario.yaml")
        run = edgefl.simulate(scenario, out=Path(scratch) / "run", device="cpu")
        now = {path.name: path.read_bytes() for path in run.glob("*.csv")}
    before = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    for name in before.keys() - now.keys():
        (folder / name).unlink()
    for name, table in now.items():
        (folder / name).write_bytes(table)
    return [folder / name for name in sorted(before | now) if before.get(name) != now.get(name)]


def main() -> None:
    files = [file for scenario in sorted(HERE.glob("*/scenario.yaml")) for file in changed(scenario.parent)]
    for file in files:
        print("changed", file.relative_to(HERE))
    print(f"{len(files)} files changed")


if __name__ == "__main__":
    main()

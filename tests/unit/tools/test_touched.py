"""Test that features stay in their packages, so that few other files name them."""

from pathlib import Path

import pytest

from tests.tools.touched import FEATURES, Feature, files_that_know

pytestmark = pytest.mark.always  # never marked `nightly`


@pytest.mark.parametrize("name", FEATURES)
def test_few_files_outside_its_rooms_know_a_feature(name: str) -> None:
    found = files_that_know(FEATURES[name])
    assert len(found) <= FEATURES[name].most, (
        f"pass the value in, or move the code into the feature's package: {found}"
    )


def test_a_file_that_names_a_feature_twice_is_counted(tmp_path: Path) -> None:
    feature = Feature(r"kite", ("edgefl/kites",), 0)
    for path, text in {
        "edgefl/kites/kite.py": "kite\nkite\n",  # in the feature's package
        "edgefl/once.py": "kite\n",
        "channel/twice.py": "kite\n\nkites, kite\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert files_that_know(feature, tmp_path) == {"channel/twice.py": 2}

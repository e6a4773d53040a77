"""Test that a picture of another program is not overwritten."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from edgefl.analysis.page.pictures import DRAWN, picture_to_write


@pytest.mark.parametrize("ending", DRAWN)
def test_only_pictures_that_edgefl_draws_are_replaced(tmp_path: Path, ending: str) -> None:
    own = tmp_path / f"own{ending}"
    Figure().savefig(own)
    assert picture_to_write(own, "--out") == own
    foreign = tmp_path / f"holiday{ending}"
    if ending == ".png":
        Image.new("RGB", (4, 4)).save(foreign)
    else:
        foreign.write_text({".pdf": "%PDF-1.7", ".svg": "<svg></svg>"}[ending])
    with pytest.raises(
        ValueError, match="is not a picture of edgefl: choose another --out, or delete the file"
    ):
        picture_to_write(foreign, "--out")

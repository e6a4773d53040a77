"""Parse XML files with expat, which unlike iterparse keeps no elements and knows line numbers."""

from pathlib import Path
from xml.parsers import expat

from edgefl.config import foreign_files
from edgefl.mobility._traces._samples import Samples


def parse(parser: expat.XMLParserType, path: Path, samples: Samples) -> None:
    """Give a file to a parser with its handlers.

    Raises:
        EdgeflError: it is not well-formed; names file and line.
    """
    with foreign_files.opened(path) as file:
        try:
            for _ in foreign_files.parse_xml(parser, file):
                pass
        except expat.ExpatError as error:
            raise samples.error(
                error.lineno,
                f"not well-formed XML ({expat.ErrorString(error.code)}); perhaps the file is cut off",
            ) from error

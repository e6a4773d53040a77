"""Read the beginning of a file, by which its format is detected."""

import re

HEAD = 1 << 16  # number of bytes in the beginning of a file


class Head:
    """The beginning of a file.

    raw: the file's first bytes, unpacked. lines: its lines, without empty lines and comments. root: the root element
    of an XML file, '' for any other file.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = raw.decode("utf-16" if wide else "utf-8-sig", errors="replace")
        whole = text[: text.rfind("\n")] if len(raw) == HEAD and "\n" in text else text
        stripped = (line.strip() for line in whole.splitlines())
        self.lines = [line for line in stripped if line and line[0] != "#"]
        self.is_xml = text.lstrip()[:1] == "<"
        element = re.search(r"<([^\s/>?!]+)", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
        self.root = element[1].rpartition(":")[2] if self.is_xml and element else ""
        self.binary = not wide and b"\0" in raw

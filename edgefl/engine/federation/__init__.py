"""Sessions, rounds and servers of the cells, and the participating devices."""

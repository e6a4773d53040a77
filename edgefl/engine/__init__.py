"""SimPy processes: server, devices, radio, population, sessions. Knows time and bits, no tensor."""

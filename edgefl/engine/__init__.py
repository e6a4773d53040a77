"""SimPy processes: servers, devices, network, radio, sessions. Knows time and bits, no tensor."""

"""SimPy processes: servers, devices, network, radio, sessions. They know time and bits, but no tensors."""

"""SimPy processes: servers, devices, network, radio, sessions. The engine knows time and bits, but no tensors."""

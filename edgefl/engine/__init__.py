"""SimPy processes: servers, devices, network, radio, sessions. The engine handles time and bits, but no tensors."""

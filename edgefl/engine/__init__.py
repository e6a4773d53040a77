"""Simulate servers, devices, network, radio and sessions as SimPy processes, with time and bits but no tensors."""

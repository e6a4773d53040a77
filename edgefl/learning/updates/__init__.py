"""Updates of devices, their encoded transfer, and the model into which updates are aggregated."""

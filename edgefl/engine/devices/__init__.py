"""Devices: their classes, batteries, power, and the ledger of their energy."""

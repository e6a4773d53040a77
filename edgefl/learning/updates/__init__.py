"""Updates, their transfer and codecs, and the model that they are aggregated into."""

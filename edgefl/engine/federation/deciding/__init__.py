"""Choose participants and their resources from expected costs and from the history of earlier rounds."""

"""Choose participants and their resources, from what deciders see and remember, at expected costs."""

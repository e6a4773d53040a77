"""One run: checked, composed, spread over processes, resumed, recorded."""

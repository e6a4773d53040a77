"""Each report as a picture: one module per report, above the lines, bars and colours that they share."""

"""The commands of `edgefl`, one file each; a function here is a command, and edgefl.cli lists them."""

"""The commands of `edgefl`, one file each; a function here is a command, and edgefl.commands.cli lists them."""

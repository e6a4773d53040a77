"""The commands of `edgefl`; a function here is a command, and edgefl.commands.cli lists them."""

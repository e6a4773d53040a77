"""The commands of `edgefl`: each is a function here, registered in edgefl.commands.cli."""

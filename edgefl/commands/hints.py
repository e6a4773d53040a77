"""Name the commands that have an option if another command is given it."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

# of click, or, in newer versions of typer, of its own copy of click
errors: Any = sys.modules[typer.BadParameter.__module__]
MOST_NAMED = 4  # an option of more commands, such as --out, is probably a slip in another word


class Hinting(TyperGroup):
    """The group of all commands, which hints at commands that have an unknown option."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except errors.NoSuchOption as error:
            having = [
                f"`{ctx.command_path} {name}`"
                for name, command in self.commands.items()
                if any(error.option_name in one.opts for one in command.params)
            ]
            if not 0 < len(having) <= MOST_NAMED:
                raise
            named = " and ".join([*filter(None, [", ".join(having[:-1])]), having[-1]])
            message = f"No such option '{error.option_name}'; it belongs to {named}."
            takes_keys = error.ctx and any("--set" in one.opts for one in error.ctx.command.params)
            if error.option_name == "--seed" and takes_keys:
                message += " Here, write --set seed=N."
            raise errors.UsageError(message, error.ctx) from None

"""Commands refuse an option of one value that is given twice: the parser would keep the last, and say nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from typer.core import TyperCommand
from typing_extensions import override

_INSTEAD: Final = {("run", "--date"): "use rankeval backfill for several dates"}
"""What to do, by command and option; elsewhere the command has nothing that takes several values."""


class OneValueCommand(TyperCommand):
    """A command whose options take one value each, unless they say that they may be repeated."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Count the options before they are read."""
        _, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for option, count in Counter(given).items():
            if count > 1 and _takes_one_value(option):
                name = option.opts[0]
                times = "twice" if count == 2 else f"{count} times"  # noqa: PLR2004 - its own word
                instead = _INSTEAD.get((str(ctx.info_name), name), "it takes one value")
                ctx.fail(f"{name} was given {times}; {instead}")
        return super().parse_args(ctx, args)


def _takes_one_value(option: Any) -> bool:  # noqa: ANN401 - of the parser below typer, which is another in its versions
    return option.param_type_name == "option" and not (option.multiple or option.is_flag)

"""Three systems on twenty topics, a published example in tenths: Sakai, evaluation of information access, table 5.1."""

from __future__ import annotations

from typing import Final

X: Final = (7, 3, 2, 6, 4, 4, 0, 7, 1, 3, 5, 4, 0, 6, 5, 3, 1, 5, 2, 1)
Y: Final = (5, 1, 0, 2, 4, 3, 0, 5, 3, 3, 4, 4, 1, 4, 2, 1, 1, 6, 3, 2)
Z: Final = (0, 0, 2, 1, 3, 3, 1, 2, 4, 4, 4, 3, 3, 2, 2, 2, 1, 5, 4, 3)

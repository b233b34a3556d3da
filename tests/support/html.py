"""A page as a browser's parser sees it: elements, attributes, and the text of scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

VOID: Final = frozenset({"meta", "input", "br", "img", "link", "hr", "path"})


@dataclass
class Element:
    """An element with its text."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Find elements inside of this one by their tag and attributes; ``class_`` is one of the classes."""
        found = [self] if self._is(tag, attributes) else []
        return found + [each for child in self.children for each in child.all(tag, **attributes)]

    def one(self, tag: str = "", **attributes: str) -> Element:
        """Find the only such element."""
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def words(self) -> str:
        """All text inside, in one line."""
        return " ".join(" ".join([self.text, *(child.words for child in self.children)]).split())

    def _is(self, tag: str, attributes: dict[str, str]) -> bool:
        own = self.attributes
        return (not tag or self.tag == tag) and all(
            value in own.get("class", "").split() if name == "class_" else own.get(name.rstrip("_")) == value
            for name, value in attributes.items()
        )


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open[-1].tag == tag, f"</{tag}> inside of <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].text += data


def parsed(page: str) -> Element:
    """Parse a page; an element that is not closed is an error."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    assert [one.tag for one in parser._open] == [""]
    return parser.root

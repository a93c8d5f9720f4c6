"""What is said of each node of a large cluster, kept small: refusals of many pods repeat the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


class NodeTexts(Mapping[str, str]):
    """Texts by the name of their node, in the order of the nodes; nodes without a text are left out.

    Thousands of pods may be refused by thousands of nodes each: one of these takes a word for each node, where a
    dictionary takes twelve.
    """

    def __init__(self, places: Mapping[str, int], texts: Sequence[str]) -> None:
        """Pair names and texts.

        Args:
            places: the position of each node by its name; shared, and never changed.
            texts: by position, ``""`` for none.
        """
        self._places = places
        self._texts = texts

    def __getitem__(self, name: str) -> str:
        text = self._texts[self._places[name]]
        if not text:
            raise KeyError(name)
        return text

    def __iter__(self) -> Iterator[str]:
        return (name for name, place in self._places.items() if self._texts[place])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

"""A text in the terminal, shaded by weight and its phrases underlined; where that is no terminal, nothing but the
text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.drawing.words import label

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from headscope.studies.keywords.finder import KeywordResult
    from headscope.widget.keywords import KeywordView

LEAST = 0.2  # fainter words keep the colours of the terminal
_FAINT, _STRONG = (150, 158, 166), (64, 170, 235)  # from grey to blue, so that on light and on dark paper the strong ones stand out


def print_keywords(found: KeywordView) -> None:
    """Print every text and the list of its phrases, then what the weights were learnt from."""
    from rich.console import Console

    from headscope.cli.printing.tables import print_table
    from headscope.results.table import Table

    console = Console(highlight=False)
    for one in found.texts:
        for paragraph in _paragraphs(one, found.top, console):
            console.print(paragraph, soft_wrap=not console.is_terminal)
            console.print()
        best = one.phrases[: found.top]
        title = f"{one.document.id}: {f'the best {len(best)} of {len(one.phrases)} phrases' if best else 'no phrase is found'}"
        if best:
            columns = {
                "phrase": [_printable(phrase.text, console) for phrase in best],
                "score": [f"{phrase.score:.2f}" for phrase in best],
                "places": [len(phrase.places) for phrase in best],
            }
            print_table(Table.of(columns), _printable(title, console))
        else:
            console.print(_printable(title, console), markup=False)
        for note in one.notes:
            console.print(note, style="dim", soft_wrap=True, markup=False)
    console.print(f"{found.trained}.", soft_wrap=True, markup=False)
    console.print(found.signature, style="dim", soft_wrap=True, markup=False)


def _paragraphs(found: KeywordResult, top: int, console: Console) -> list[Text]:
    from rich.text import Text

    under = {place for phrase in found.phrases[:top] for start, end in phrase.places for place in range(start, end)}
    last = {end - 1 for phrase in found.phrases[:top] for _, end in phrase.places}
    paragraphs = []
    at = 0
    for sentences in found.document.paragraphs():
        text = Text()
        for word in (word for sentence in sentences for word in sentence.words):
            text.append(_printable(word.form, console), _style(float(found.weights[at]), at in under))
            text.append(" " * word.space_after, "underline" if at in under and at not in last else "")
            at += 1
        text.rstrip()
        paragraphs.append(text)
    return paragraphs


def _style(weight: float, underlined: bool) -> str:
    mix = [round(light + (dark - light) * min(weight, 1)) for light, dark in zip(_FAINT, _STRONG, strict=True)]
    shade = f"#000000 on rgb({','.join(map(str, mix))})" if weight >= LEAST else ""
    return f"{shade} underline".strip() if underlined else shade


def _printable(text: str, console: Console) -> str:
    return label(text, len(text)).encode(console.encoding, "replace").decode(console.encoding)

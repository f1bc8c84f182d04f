"""Lines of text on standard output: wrapped at words in a terminal, whole everywhere else."""

from __future__ import annotations


def print_text(text: str, style: str = "", err: bool = False, indent: int | None = None) -> None:
    """Print a paragraph. In a terminal it is wrapped between words, and a signature between its parts; further lines
    are indented by `indent` spaces, by default as the first line.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, stderr=err)
    if console.is_terminal:
        text = "\n".join(_wrapped(line, console.width, indent) for line in text.split("\n"))
    console.print(Text(text), style=style, soft_wrap=True)


def _wrapped(line: str, width: int, indent: int | None) -> str:
    """A line as lines of at most this width; longer words stay whole, except signatures."""
    import textwrap

    if len(line) <= width:
        return line
    before, mark, signature = line.partition("headscope:")
    if mark and "|" in signature:
        lines = [_wrapped(before.rstrip(), width, indent)] if before else []
        return "\n".join([*lines, _wrapped_signature(f"{mark}{signature}", width)])
    if indent is None:
        indent = len(line) - len(line.lstrip())
    return textwrap.fill(line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def _wrapped_signature(line: str, width: int) -> str:
    """A signature in as few lines as possible, which end between its parts."""
    lines = [""]
    *parts, last = line.split("|")
    for part in (*(f"{part}|" for part in parts), last):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)

"""Texts shaded by the weight of their words, the found phrases underlined, as one page without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from headscope.core.paths import printable
from headscope.studies.keywords.finder import KeywordResult
from headscope.views.page import whole_page

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SHADES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the key
LEAST = 0.02  # a fainter shade cannot be seen
_STYLE = (
    "body{max-width:56rem;padding:1.5rem 1rem 4rem}h1{font-size:1.5rem}h2{font-size:1.15rem;margin:2rem 0 .4rem;overflow-wrap:anywhere}"
    ".text{font-size:1.05rem;line-height:1.9;overflow-wrap:anywhere}.text p{margin:.7rem 0}"
    ".text span,.key i{background:color-mix(in srgb,var(--hs-s1) calc(var(--v)*var(--hs-shade)),transparent)}"
    ".text span{border-radius:.2rem;padding:.1rem 0}"
    ".text u{text-decoration:none;border-bottom:2.5px solid var(--hs-s2);padding-bottom:.12rem}"
    ".text u:target{outline:2px solid var(--hs-s2);outline-offset:.15rem}"
    ".note,.key{font-size:.88rem;color:var(--hs-faint);margin:.3rem 0}.key i{font-style:normal;color:var(--hs-ink);padding:.1rem .4rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem;margin-top:.6rem}"
    "th,td{padding:.15rem .7rem .15rem 0;text-align:right}th{font-weight:600;border-bottom:1px solid var(--hs-line)}"
    "th:nth-child(2),td:nth-child(2){text-align:left;overflow-wrap:anywhere}"
    ".signature{font:.76rem/1.5 var(--hs-mono);color:var(--hs-faint);overflow-wrap:anywhere;margin-top:2.5rem}"
)
_BODY = """<main>
<h1>{title}</h1>
<p>{trained}.</p>
<p class="key">{key}</p>
{sections}
<p class="signature">{signature}</p>
</main>"""


def page(texts: Sequence[KeywordResult], top: int, signature: str) -> str:
    """The whole page; it loads and runs nothing, and texts are escaped."""
    single = len(texts) == 1
    shades = "".join(f'<i style="--v:{value}">{value:.1f}</i>' for value in SHADES)
    title = f"Keywords: {texts[0].document.id}" if single else f"Keywords of {len(texts):,} texts"
    body = _BODY.format(
        title=_safe(title),
        trained=_safe(texts[0].trained.sentence),
        key=f"The darker the shade, the likelier a word is part of a keyphrase: {shades}  Underlined: the best phrases, up to {top}.",
        sections="\n".join(_section(result, top, number, heading=not single) for number, result in enumerate(texts, 1)),
        signature=_safe(signature),
    )
    return whole_page(title, body, POLICY, _STYLE)


def _section(result: KeywordResult, top: int, number: int, heading: bool) -> str:
    title = f"<h2>{_safe(result.document.id)}</h2>\n" if heading else ""
    notes = "".join(f'<p class="note">{_safe(note)}.</p>\n' for note in result.notes)
    rows = "\n".join(
        f'<tr><td>{rank}</td><td><a href="#t{number}p{rank}">{_safe(phrase.text)}</a></td>'
        f"<td>{phrase.score:.2f}</td><td>{len(phrase.places)}</td></tr>"
        for rank, phrase in enumerate(result.phrases[:top], 1)
    )
    table = f"<table><thead><tr><th></th><th>phrase</th><th>score</th><th>places</th></tr></thead><tbody>\n{rows}\n</tbody></table>"
    nothing = '<p class="note">No phrase was found.</p>'
    return f'<section>\n{title}{notes}<div class="text">\n{_text(result, top, number)}\n</div>\n{table if rows else nothing}\n</section>'


def _text(result: KeywordResult, top: int, number: int) -> str:
    """The paragraphs with shaded words and underlined phrases; the first place of a phrase is the target of a link."""
    best = result.phrases[:top]
    opens = {start: "" for phrase in best for start, _ in phrase.places}
    opens |= {phrase.places[0][0]: f' id="t{number}p{rank}"' for rank, phrase in enumerate(best, 1)}
    closes = {place[1] for phrase in best for place in phrase.places}
    parts: list[str] = []
    at = 0
    for sentences in result.document.paragraphs():
        parts.append("<p>")
        for word in (word for sentence in sentences for word in sentence.words):
            weight = float(result.weights[at])
            if at in opens:
                parts.append(f"<u{opens[at]}>")
            form = _safe(word.form)
            parts.append(f'<span style="--v:{weight:.2f}" title="{weight:.2f}">{form}</span>' if weight >= LEAST else form)
            at += 1
            if at in closes:
                parts.append("</u>")
            parts.append(" " * word.space_after)
        parts.append("</p>\n")
    return "".join(parts).rstrip()


def _safe(text: str) -> str:
    return escape(printable(text))

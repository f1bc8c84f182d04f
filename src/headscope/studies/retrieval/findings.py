"""Findings of a study of retrieval heads, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from headscope.results.results import Results
from headscope.results.table import interval
from headscope.studies.retrieval.spec import ABOVE

LISTED = 5
_HOW = {
    "greedy": "while the model answered by itself",
    "forced": "by forced decoding (the right answer was given to the model token by token)",
}


def sentences(results: Results) -> list[str]:
    """What was answered, which heads retrieve, how stable they are, and what depends on them, as sentences."""
    return [_answered(results), _heads(results), _stability(results), *_ablation(results)]


def _answered(results: Results) -> str:
    rows = {row["what"]: row for row in results["summary"]}
    passed, exact = rows["questions answered"], rows["answers given word for word"]
    return (
        f"The model answered {interval(passed['value'], passed['low'], passed['high'])} of {passed['n']} questions (ROUGE-1 recall above "
        f".5), and {interval(exact['value'], exact['low'], exact['high'])} word for word."
    )


def _heads(results: Results) -> str:
    table = results["retrieval_heads"]
    main = table["decoding"][0]
    rows = list(table.where(decoding=main))
    above = [row for row in rows if row["score"] > ABOVE]
    named = ", ".join(f"{results.head_of(row)} ({interval(row['score'], row['low'], row['high'])})" for row in rows[:LISTED])
    best = next(row for row in results["summary"] if row["what"].startswith("score of the best head"))
    return (
        f"{len(above)} of {len(rows)} heads score above {ABOVE:g} {_HOW[main]}: the highest are {named} (a head that attends most to a "
        f"random token: {rows[0]['baseline']:.3f}). The best head, chosen on other documents, scores "
        f"{interval(best['value'], best['low'], best['high'])}."
    )


def _stability(results: Results) -> str:
    rows = list(results["retrieval_stability"].where(resampled="with replacement"))
    kept_shares = [
        f"its first head in {row['value']:.0%} of draws" if row["k"] == 1 else f"{row['value']:.0%} of its first {row['k']} heads"
        for row in rows
    ]
    chance = ", ".join(f"{row['baseline']:.0%}" for row in rows)
    return f"On resampled documents, the ranking of heads keeps {', '.join(kept_shares)} (expected at random: {chance})."


def _ablation(results: Results) -> Iterator[str]:
    table = results["retrieval_ablation"]
    whole = next(iter(table))
    for k in sorted(set(table["k"]) - {0}):
        strongest, random = (next(row for row in table if row["k"] == k and row["heads"] == heads) for heads in ("strongest", "random"))
        several = f"{k} strongest heads, chosen" if k > 1 else "strongest head, chosen"
        chance = f"{k} random ones" if k > 1 else "a random one"
        yield (
            f"Without the {several} on other documents, the model gives "
            f"{interval(strongest['found'], strongest['found_low'], strongest['found_high'])} of the answers word for word, without "
            f"{chance} {random['found']:.2f}, with all heads {whole['found']:.2f}; the loss of the answer grows by "
            f"{interval(strongest['gained'], strongest['gained_low'], strongest['gained_high'])} nats per token, and without {chance} by "
            f"{interval(random['gained'], random['gained_low'], random['gained_high'])}."
        )

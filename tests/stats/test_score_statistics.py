"""Statistics of rows without maps: the plain form against loops in float64, and the kernels against the plain form."""

from __future__ import annotations

import math

import pytest
import torch

from headscope.core.rows import Reach
from headscope.kernels import attention_cpu, kernel
from headscope.stats.rows import even_statistics, row_statistics, score_statistics

NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device: the Triton kernel is not run")
REACHES = [Reach(), Reach(None, 0), Reach(4, 0), Reach(3, 3), Reach(0, 0), Reach(None, 2)]
OFFSETS = (-2, -1, 0, 1, 6)


def inputs(texts: int = 3, heads: int = 4, kv_heads: int = 2, rows: int = 37, keys: int = 37) -> tuple[torch.Tensor, ...]:
    """Return queries, keys, values, the lengths of queries and keys, and four groups of keys: the first, every third,
    all, none.
    """
    random = torch.Generator().manual_seed(rows)
    query, key, value = (
        torch.randn(texts, count, size, width, generator=random) * 2
        for count, size, width in ((heads, rows, 12), (kv_heads, keys, 12), (kv_heads, keys, 5))
    )
    lengths = [torch.tensor([size, size - 5, 1][:texts]) for size in (rows, keys)]
    places = torch.arange(keys)
    groups = torch.stack([places == 0, places % 3 == 1, places >= 0, places < 0], -1).float()
    return query, key, value, *lengths, groups.expand(texts, -1, -1).clone()


def slowly(query: torch.Tensor, key: torch.Tensor, reach: Reach, rows: int, keys: int, groups: torch.Tensor) -> list[list[float]]:
    """Return the statistics of one head of one text, computed by loops."""
    found = []
    for i in range(len(query)):
        visible = [
            j
            for j in range(keys)
            if (reach.before is None or j >= i - reach.before) and (reach.after is None or j <= i + reach.after) and i < rows
        ]
        scores = [0.3 * float(query[i] @ key[j]) for j in visible]
        weights = dict(zip(visible, (math.exp(s) / sum(map(math.exp, scores)) for s in scores), strict=True))
        entropy = -sum(p * math.log(p) for p in weights.values() if p > 0)
        masses = [sum(p for j, p in weights.items() if groups[j, g]) for g in range(groups.shape[1])]
        found.append([0, entropy, max(weights.values(), default=0), *masses, *(weights.get(i + offset, 0) for offset in OFFSETS)])
    return found


@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("block", [1, 1 << 26])
def test_the_plain_form_equals_loops(reach: Reach, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.stats.rows.ROWS", block)
    query, key, _, rows, keys, groups = (tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs(rows=11, keys=11))
    values, logs = score_statistics(query, key, 0.3, reach, (rows, keys), groups, OFFSETS)
    for text in range(3):
        for head in range(4):
            expected = slowly(query[text, head], key[text, head // 2], reach, int(rows[text]), int(keys[text]), groups[text])
            torch.testing.assert_close(values[text, head], torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-9)
            largest = expected[0][2]  # the largest weight of the first row: e^(score - log)
            scores = [0.3 * float(query[text, head, 0] @ key[text, head // 2, j]) for j in range(11)]
            assert any(math.isclose(math.exp(score - float(logs[text, head, 0])), largest, rel_tol=1e-9) for score in scores)


@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("cache", [100, 4000, 1 << 20])
@pytest.mark.parametrize("size", [(3, 37, 37), (1, 1500, 1500), (2, 1, 1)])
def test_the_cpu_kernel_gives_the_outputs_of_heads_and_the_plain_statistics(
    reach: Reach, cache: int, size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if size[1] > 1000 and cache < 4000:
        pytest.skip("a thousand blocks test no more than ten")
    monkeypatch.setattr(attention_cpu, "CACHE", cache)
    query, key, value, rows, keys, groups = inputs(size[0], 4, 2, *size[1:])
    starts = torch.arange(size[1]).expand(size[0], -1) // 7 * 7
    spans = torch.stack([starts, (starts + 7).clamp_max(size[2])])
    spans[:, :, 2:4] = 0  # these rows have no span
    parts = ((rows, keys), groups, OFFSETS, spans)
    output, values, logs, near = attention_cpu.attend(query, key, value, 0.3, (reach.before, reach.after), *parts)
    expected, expected_logs = score_statistics(query.double(), key.double(), 0.3, reach, (rows, keys), groups.double(), OFFSETS)
    torch.testing.assert_close(logs.double(), expected_logs, rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(values[..., 1].double(), expected[..., 1], rtol=0, atol=1e-5)
    atol = 1e-6 if size[2] < 1000 else 3e-6  # sums over 1,500 weights in single precision, in blocks
    torch.testing.assert_close(values.double()[..., 2:], expected[..., 2:], rtol=0, atol=atol)
    assert not values[..., 0].any()
    visible = torch.arange(size[2])[None, None] < keys[:, None, None]
    gap = torch.arange(size[2]) - torch.arange(size[1])[:, None]
    visible = visible & (gap >= -(reach.before if reach.before is not None else 10**9))
    visible = visible & (gap <= (reach.after if reach.after is not None else 10**9)) & (torch.arange(size[1]) < rows[:, None])[..., None]
    scores = query.double() @ key.double().repeat_interleave(2, 1).transpose(-1, -2) * 0.3
    weights = scores.masked_fill(~visible[:, None], -torch.inf).softmax(-1).nan_to_num(0)
    given = (weights @ value.double().repeat_interleave(2, 1)).transpose(1, 2)
    torch.testing.assert_close(output.double(), given, rtol=0, atol=2e-5)
    place = spans[0, :, :, None] + torch.arange(7)
    inside = (place < spans[1, :, :, None])[:, None]
    index = place.clamp_max(size[2] - 1)[:, None].expand(-1, 4, -1, -1)
    assert near is not None
    width = near.shape[-1]
    assert width == min(7, size[2])
    torch.testing.assert_close(near.double(), (weights.gather(3, index) * inside)[..., :width], rtol=0, atol=1e-6)


def test_weights_of_spans_that_need_too_much_memory_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value, rows, keys, groups = inputs()
    spans = torch.tensor([0, 37])[:, None, None].expand(2, 3, 37).contiguous()
    monkeypatch.setattr(attention_cpu, "LARGEST", 3 * 4 * 37 * 37 - 1)
    assert attention_cpu.attend(query, key, value, 0.3, (None, None), (rows, keys), groups, OFFSETS, spans)[3] is None
    monkeypatch.setattr(attention_cpu, "LARGEST", 3 * 4 * 37 * 37)
    assert attention_cpu.attend(query, key, value, 0.3, (None, None), (rows, keys), groups, OFFSETS, spans)[3] is not None


def test_half_precision_inputs_are_computed_in_single_precision() -> None:
    query, key, value, rows, keys, groups = inputs()
    halves = (query.bfloat16(), key.bfloat16(), value.bfloat16())
    output, values, *_ = attention_cpu.attend(*halves, 0.3, (None, None), (rows, keys), groups, OFFSETS)
    expected, _ = score_statistics(halves[0].double(), halves[1].double(), 0.3, Reach(), (rows, keys), groups.double(), OFFSETS)
    torch.testing.assert_close(values.double(), expected, rtol=0, atol=5e-6)
    assert output.dtype == torch.bfloat16


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_score_that_is_not_finite_makes_the_statistics_nan(bad: float) -> None:
    query, key, value, rows, keys, groups = inputs()
    query[0, 1, 3, 0] = bad
    _, values, *_ = attention_cpu.attend(query, key, value, 0.3, (None, None), (rows, keys), groups, OFFSETS)
    assert values[0, 1, 3].isnan().all()
    assert values.isnan().sum() == values.shape[-1]
    plain, _ = score_statistics(query, key, 0.3, Reach(), (rows, keys), groups, OFFSETS)
    assert plain[0, 1, 3, 1].isnan()


@pytest.mark.parametrize("reach", REACHES, ids=str)
def test_even_attention_is_the_attention_of_a_zero_query(reach: Reach) -> None:
    query, key, _, rows, keys, groups = inputs()
    expected, _ = score_statistics(query[:, :1] * 0, key[:, :1], 0.3, reach, (rows, keys), groups, OFFSETS)
    torch.testing.assert_close(even_statistics(reach, (rows, keys), 37, groups, OFFSETS), expected, rtol=0, atol=1e-6)


def test_statistics_of_rows_with_a_sink_equal_those_worked_out_by_hand() -> None:
    """Half of the first row goes to a sink. Its entropy is that of the rest, (1/2, 1/2)."""
    maps = torch.tensor([[[[0.25, 0.25, 0.0], [0.0, 1.0, 0.0], [9.0, 9.0, 9.0]]]])
    values = row_statistics(maps, torch.tensor([[True, True, False]]), torch.tensor([[[1.0], [0.0], [1.0]]]), (1, -1))
    expected = [[0.5, math.log(2), 0.25, 0.25, 0.25, 0.0], [0, 0, 1, 0, 0, 0], [0] * 6]
    torch.testing.assert_close(values[0, 0], torch.tensor(expected))


@NO_CUDA
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reach", REACHES, ids=str)
@pytest.mark.parametrize("size", [(3, 37, 37), (1, 1500, 1500), (2, 1, 1)])
def test_the_cuda_kernel_gives_the_plain_statistics(dtype: torch.dtype, reach: Reach, size: tuple[int, int, int]) -> None:
    fast = kernel("attention_cuda")
    assert fast is not None
    query, key, _, rows, keys, groups = (tensor.cuda() for tensor in inputs(size[0], 4, 2, *size[1:]))
    query, key = query.to(dtype), key.to(dtype)
    values, logs = fast.statistics(query, key, 0.3, (reach.before, reach.after), (rows, keys), groups, OFFSETS)
    expected, expected_logs = score_statistics(query.double(), key.double(), 0.3, reach, (rows, keys), groups.double(), OFFSETS)
    torch.testing.assert_close(logs.double(), expected_logs, rtol=1e-6, atol=2e-5)
    torch.testing.assert_close(values[..., 1].double(), expected[..., 1], rtol=0, atol=1e-5)
    torch.testing.assert_close(values.double(), expected, rtol=0, atol=1e-5)


@NO_CUDA
def test_the_cuda_kernels_accept_any_number_of_short_texts() -> None:
    """The texts have more heads than the second axis of a CUDA grid can have programs (65,535)."""
    fast = kernel("attention_cuda")
    assert fast is not None
    texts, heads, size = 17000, 4, 3
    random = torch.Generator("cuda").manual_seed(0)
    query, key = (torch.randn(texts, heads, size, 12, generator=random, device="cuda") for _ in range(2))
    lengths = (torch.arange(texts, device="cuda") % size + 1,) * 2
    groups = torch.ones((texts, size, 1), device="cuda")
    values, logs = fast.statistics(query, key, 0.3, (None, None), lengths, groups, OFFSETS)
    expected, expected_logs = score_statistics(query.double(), key.double(), 0.3, Reach(), lengths, groups.double(), OFFSETS)
    torch.testing.assert_close(values.double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(logs.double(), expected_logs, rtol=1e-6, atol=2e-5)
    inside = torch.arange(size, device="cuda") < lengths[0][:, None]
    scores = (query.double() @ key.double().transpose(-1, -2) * 0.3).masked_fill(~inside[:, None, None], -torch.inf)
    weights = fast.weights(query, key, logs, 0.3, (None, None), lengths, range(size))
    torch.testing.assert_close(weights.double(), scores.softmax(-1) * inside[:, None, :, None], rtol=0, atol=1e-5)

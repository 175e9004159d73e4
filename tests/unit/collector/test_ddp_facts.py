"""What DDP says of itself, parsed and checked against DDP's own words."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from rankscope.collector.ddp import parse_number_lists, parse_numbers, read_ddp_facts, split_in_reverse
from rankscope.collector.watching import WatchedModules

torch = pytest.importorskip("torch", reason="DDP is torch's")
DDP = torch.nn.parallel.DistributedDataParallel
ProcessGroup = Callable[[], None]


@pytest.mark.parametrize("text", [None, "", "N/A", 7, "1, x"])
def test_a_text_without_numbers_has_none(text: object) -> None:
    assert parse_numbers(text) == []


def test_commas_part_buckets_and_blanks_part_parameters() -> None:
    assert parse_number_lists("11 10 9 8, 7 6, 5") == [[11, 10, 9, 8], [7, 6], [5]]
    assert parse_number_lists("") == []


def test_a_layout_that_was_not_rebuilt_runs_from_the_end() -> None:
    assert split_in_reverse([30, 5, 60], [10, 50, 5, 20, 10]) == [[3, 4], [2], [0, 1]]


@pytest.mark.parametrize("sizes", [[30, 6, 59], [30, 5], [30, 5, 60, 1]])
def test_sizes_that_do_not_fit_say_nothing_about_parameters(sizes: list[int]) -> None:
    assert split_in_reverse(sizes, [10, 50, 5, 20, 10]) == [[] for _ in sizes]


def _stack(layers: int = 6) -> Any:
    return torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(layers)])


def _train(model: Any, steps: int = 3) -> None:
    for _ in range(steps):
        model(torch.ones(2, 256)).sum().backward()


def test_rebuilt_buckets_are_ddps_own(process_group: ProcessGroup) -> None:
    process_group()
    model = DDP(_stack(), bucket_cap_mb=0.5)
    _train(model)
    notes: list[str] = []
    facts = read_ddp_facts(model, notes)
    assert notes == []
    # 256 x 256 weights and 256 biases of 4 bytes: two layers (526,336 bytes) reach the cap of 524,288
    assert [bucket.size_bytes for bucket in facts.buckets] == [526_336] * 3
    assert [bucket.parameters for bucket in facts.buckets] == [[11, 10, 9, 8], [7, 6, 5, 4], [3, 2, 1, 0]]
    assert [bucket.index for bucket in facts.buckets] == [0, 1, 2]
    assert {bucket.dtype for bucket in facts.buckets} == {"float32"}
    assert facts.ready_order == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert [p.name for p in facts.parameters[:2]] == ["0.weight", "0.bias"]
    assert [p.elements for p in facts.parameters[:2]] == [65_536, 256]
    assert facts.bucket_cap_bytes == 524_288
    assert facts.first_bucket_bytes is None
    assert facts.has_rebuilt_buckets is True
    assert (facts.find_unused_parameters, facts.static_graph) == (False, False)
    assert facts.module == "Sequential"
    assert facts.group == "0"
    assert facts.averages["avg_backward_comm_time"] > 0


def test_default_cap_has_a_small_first_bucket(process_group: ProcessGroup) -> None:
    process_group()
    facts = read_ddp_facts(DDP(_stack()), [])
    assert (facts.bucket_cap_bytes, facts.first_bucket_bytes) == (26_214_400, 1_048_576)


def test_first_iteration_has_one_bucket_with_everything(process_group: ProcessGroup) -> None:
    process_group()
    model = DDP(_stack(), bucket_cap_mb=0.5)
    _train(model, steps=1)
    facts = read_ddp_facts(model, [])
    assert facts.has_rebuilt_buckets in (None, False)
    assert [bucket.parameters for bucket in facts.buckets] == [list(range(12))]


def test_buckets_that_are_never_rebuilt_have_parameters_too(process_group: ProcessGroup) -> None:
    process_group()

    class Halves(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = _stack(2), _stack(1)

        def forward(self, samples: Any) -> Any:
            return self.used(samples)

    model = DDP(Halves(), bucket_cap_mb=0.2, find_unused_parameters=True)
    _train(model)
    facts = read_ddp_facts(model, [])
    assert facts.find_unused_parameters is True
    assert facts.has_rebuilt_buckets is False
    # parameters() in order: 262,144 reaches the cap of 209,715; then 1,024 + 262,144; the last run goes first
    assert [(b.size_bytes, b.parameters) for b in facts.buckets] == [
        (1_024, [5]),
        (263_168, [3, 4]),
        (263_168, [1, 2]),
        (262_144, [0]),
    ]
    names = [facts.parameters[i].name for i in facts.buckets[1].parameters]
    assert names == ["used.1.bias", "unused.0.weight"]


def test_shared_and_frozen_parameters_keep_ddps_numbering(process_group: ProcessGroup) -> None:
    process_group()
    module = _stack(4)
    module[2].weight = module[0].weight
    module[1].weight.requires_grad_(False)
    facts = read_ddp_facts(DDP(module), [])
    assert [p.name for p in facts.parameters] == [
        "0.weight", "0.bias", "1.bias", "2.bias", "3.weight", "3.bias",
    ]  # fmt: skip


def test_parameters_frozen_after_wrapping_leave_names_unknown(process_group: ProcessGroup) -> None:
    process_group()
    model = DDP(_stack(2))
    model.module[0].weight.requires_grad_(False)
    notes: list[str] = []
    facts = read_ddp_facts(model, notes)
    assert facts.parameters == []
    assert "has 3 parameters" in notes[0]
    assert "built with 4" in notes[0]


def test_mixed_dtypes_are_told_apart(process_group: ProcessGroup) -> None:
    process_group()

    class Mixed(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.narrow, self.wide = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256).double()

        def forward(self, samples: Any) -> Any:
            return self.wide(self.narrow(samples).double())

    model = DDP(Mixed(), bucket_cap_mb=0.1)
    _train(model)
    buckets = read_ddp_facts(model, []).buckets
    assert [(b.size_bytes, b.dtype) for b in buckets] == [(526_336, "float64"), (263_168, "float32")]


def test_hooks_and_caps_per_bucket_are_named(process_group: ProcessGroup) -> None:
    process_group()
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = DDP(_stack(2), bucket_cap_mb=1)
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    facts = read_ddp_facts(model, [])
    assert facts.communication_hook == "fp16_compress_hook"
    assert facts.bucket_caps_bytes == []


def test_logging_data_of_another_torch_becomes_a_note(
    process_group: ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_group()
    monkeypatch.delattr(DDP, "_get_ddp_logging_data")
    notes: list[str] = []
    facts = read_ddp_facts(DDP(_stack(1)), notes)
    assert facts.buckets == []
    assert "AttributeError" in notes[0]


def test_unknown_and_missing_keys_leave_facts_unknown(
    process_group: ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_group()
    words = {"rebuilt_bucket_sizes": "8, 4", "rebuilt_per_bucket_param_indices": "1", "new_key": "?"}
    monkeypatch.setattr(DDP, "_get_ddp_logging_data", lambda self: words)
    facts = read_ddp_facts(DDP(_stack(1)), [])
    assert [(b.size_bytes, b.parameters) for b in facts.buckets] == [(8, []), (4, [])]
    assert facts.bucket_cap_bytes is None
    assert facts.find_unused_parameters is None


def test_watching_keeps_no_model_alive(process_group: ProcessGroup) -> None:
    process_group()
    watched = WatchedModules()
    model = DDP(_stack(1))
    watched.add(model)
    del model
    gc.collect()
    notes: list[str] = []
    assert watched.read_facts(notes) == []
    assert "no longer existed" in notes[0]


def test_a_compiled_module_is_watched_once(process_group: ProcessGroup) -> None:
    process_group()
    watched = WatchedModules()
    model = DDP(_stack(1))
    watched.add(torch.compile(model, backend="eager"))
    watched.add(model)
    assert len(watched.read_facts([])) == 1


def test_sampling_is_raised_only_while_recording(
    process_group: ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    process_group()
    rates: list[int] = []
    monkeypatch.setattr(DDP, "_set_ddp_runtime_logging_sample_rate", lambda self, rate: rates.append(rate))
    watched = WatchedModules()
    early, late = DDP(_stack(1)), DDP(_stack(1))
    watched.add(early)
    watched.sample_as_before()
    assert rates == []
    watched.sample_every_iteration()
    watched.add(late)
    assert rates == [1, 1]
    watched.sample_as_before()
    watched.sample_as_before()
    assert rates == [1, 1, 100, 100]


def test_the_initial_layout_is_kept_beside_the_rebuilt_one(process_group: ProcessGroup) -> None:
    process_group()
    model = DDP(_stack(), bucket_cap_mb=0.5)
    _train(model)
    facts = read_ddp_facts(model, [])
    # 6 x (256 x 256 + 256) x 4 bytes: the first iteration sends all in one bucket
    assert [(b.size_bytes, b.parameters) for b in facts.initial_buckets] == [(1_579_008, list(range(12)))]
    assert len(facts.buckets) == 3
    fresh = read_ddp_facts(DDP(_stack(), bucket_cap_mb=0.5), [])
    assert (len(fresh.buckets), fresh.initial_buckets) == (1, [])


def test_flags_are_ddps_own(process_group: ProcessGroup) -> None:
    process_group()
    model = DDP(_stack(1), static_graph=True, gradient_as_bucket_view=True)
    _train(model)
    facts = read_ddp_facts(model, [])
    assert (facts.static_graph, facts.gradient_as_bucket_view, facts.find_unused_parameters) == (
        True, True, False,
    )  # fmt: skip


def test_what_is_reduced_most_is_what_calibration_measures(process_group: ProcessGroup) -> None:
    process_group()
    watched = WatchedModules()
    assert watched.find_gradients() is None
    module = torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.Linear(8, 4).double(), torch.nn.Linear(8, 100)
    )
    module[2].weight.requires_grad_(False)
    model = DDP(module)
    watched.add(model)
    gradients = watched.find_gradients()
    assert gradients is not None
    # float32: 64 + 8 + 100 elements of 4 bytes = 688 (800 weights are frozen); float64: 32 + 4 of 8 bytes = 288
    assert (gradients.size_bytes, gradients.dtype, gradients.device.type) == (688, torch.float32, "cpu")
    assert gradients.group is model.process_group


def test_a_cap_per_bucket_is_kept(process_group: ProcessGroup) -> None:
    process_group()
    try:
        model = DDP(_stack(), bucket_cap_mb_list=[0.25, 0.5])
    except TypeError:
        pytest.skip("this torch has no bucket_cap_mb_list")
    assert read_ddp_facts(model, []).bucket_caps_bytes == [262_144, 524_288]

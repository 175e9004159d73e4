"""What scrubbing takes out of a trace's text, and what it leaves."""

from __future__ import annotations

import pytest

from rankscope.collector.scrub import scrub_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'"host_name": "gpu17.cluster.example",', b'"host_name": "",'),
        (b'"traceName": "/tmp/rankscope_x/trace.json"', b'"traceName": "trace.json"'),
        (b'"name": "/home/ann/my job/train.py(12): main"', b'"name": "train.py(12): main"'),
        (b'"Call stack": "/a/b/x.py(1): f;/c/d/y.py(2): g"', b'"Call stack": "x.py(1): f;y.py(2): g"'),
        (rb'"name": "C:\\Users\\ann\\train.py(3): f"', rb'"name": "train.py(3): f"'),
    ],
)
def test_hosts_and_folders_go(text: bytes, expected: bytes) -> None:
    assert scrub_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        b'"name": "aten::add"',
        b'"name": "FSDP::all_gather (layers.0)"',
        b'"name": "void at::native::kernel<4, at::f<float> >(int, T1)"',
        b'"name": "torch/nn/modules/linear.py(125): forward"',
        b'"Concrete Inputs": ["1/2", "a / b"], "ts": 12.5',
    ],
)
def test_names_stay(text: bytes) -> None:
    assert scrub_text(text) == text

"""How fast trace files are read, against other decoders and against floors, on one core.

    python benchmarks/read.py                  306 MB, decoders and floors
    python benchmarks/read.py --large          also a file of 2 GB, for the memory

Then the command itself: without its cache, and the first and the second time with it.

The file is a real shared trace repeated in time. orjson and pysimdjson are compared with where they are installed
(`pip install orjson pysimdjson`); they are no dependencies. CPU seconds are the measure: on a machine that does
other things too, wall time says little. Every measurement is a process of its own, in turns.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measuring import alternate, answer_if_asked, load_note, measure_once, median_of, table_line
from rankscope.testing.repeat import repeat_in_time

SHARED = Path(__file__).resolve().parents[2] / "shared" / "traces"
SOURCE = SHARED / "nccl_ddp_buckets_1of2" / "nccl_data.json.gz"
REPEATS, LARGE_REPEATS = 31, 205
BLOCK_BYTES = 2 << 20
BUDGET_MIB, BUDGET_BYTES_PER_ROW = 150, 48
SETTLE_SECONDS = 3
"""The hash of a file that was written to in the last two seconds is not remembered."""
_BOUNDARY = re.compile(rb"\}\s*,\s*\{")


def event_blocks(path: Path) -> Iterator[bytes]:
    """The events as JSON arrays of about 2 MB, so that every decoder gets the same work in the same memory."""
    with path.open("rb") as file:
        head = file.read(BLOCK_BYTES)
        held = head[head.index(b"[", head.index(b'"traceEvents"')) + 1 :]
        while block := file.read(BLOCK_BYTES):
            held += block
            *_, last = _BOUNDARY.finditer(held, len(held) - (1 << 16))
            yield b"[" + held[: last.start() + 1] + b"]"
            held = held[held.index(b",", last.start()) + 1 :]


def _each_block(decode: Callable[[bytes], object]) -> Callable[[Path], None]:
    def work(path: Path) -> None:
        for block in event_blocks(path):
            decode(block)

    return work


def read_with_rankscope(path: Path) -> None:
    """The whole reader: unpack, cut, decode, columns, sorted table."""
    from rankscope.model.categories import Classifier
    from rankscope.readers.trace_file import read_trace

    with path.open("rb") as file:
        read_trace(file, path.name, Classifier())


def analyze_with_rankscope(path: Path) -> None:
    """Reading and the full report."""
    from rankscope.pipeline import analyze

    analyze(path)


def decode_typed(path: Path) -> None:
    """What the reader does to text, without columns."""
    from rankscope.readers.event_decoding import decode_events

    _each_block(decode_events)(path)


def decode_untyped(path: Path) -> None:
    """Msgspec into dicts and lists."""
    import msgspec

    _each_block(msgspec.json.Decoder().decode)(path)


def decode_with_orjson(path: Path) -> None:
    """Orjson into dicts and lists."""
    import orjson

    _each_block(orjson.loads)(path)


def decode_with_stdlib(path: Path) -> None:
    """The standard library into dicts and lists."""
    _each_block(json.loads)(path)


def parse_with_simdjson(path: Path) -> None:
    """A DOM that nothing is taken out of: a floor, since columns must still be filled from it."""
    import simdjson

    parser: Any = simdjson.Parser()

    def parse(block: bytes) -> None:
        parser.parse(block)

    _each_block(parse)(path)


def columns_with_simdjson(path: Path) -> None:
    """A DOM, and the eight fields of each event taken out of it: what a reader would have to do with it."""
    import simdjson

    parser: Any = simdjson.Parser()
    wanted = ("cat", "name", "pid", "tid", "ts", "dur")

    def take(block: bytes) -> None:
        for event in parser.parse(block):
            if event.get("ph") == "X":
                for key in wanted:
                    event.get(key)
                args = event.get("args")
                if args is not None:
                    args.get("correlation"), args.get("External id")

    _each_block(take)(path)


def decode_with_arrow(path: Path) -> None:
    """Arrow's own JSON reader into columns, given the schema; blocks that do not fit it are counted out."""
    import pyarrow as pa
    import pyarrow.json as pj

    number, text = pa.int64(), pa.string()
    args = pa.struct(
        [("External id", number), ("correlation", number), ("device", number), ("stream", number)]
    )
    columns = [("ph", text), ("cat", text), ("name", text), ("pid", number), ("tid", number)]
    schema = pa.schema([*columns, ("ts", pa.float64()), ("dur", pa.float64()), ("args", args)])
    how = pj.ParseOptions(explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="ignore")
    options = pj.ReadOptions(use_threads=False, block_size=4 * BLOCK_BYTES)
    for block in event_blocks(path):
        lines = block[1:-1].replace(b"},\n  {", b"}\n  {")
        try:
            pj.read_json(pa.BufferReader(lines), options, how)
        except pa.ArrowInvalid:
            continue


def unpack_gzip(path: Path) -> None:
    """Gzip alone, as the reader unpacks it; `path` with .gz appended."""
    from rankscope.readers.byte_stream import unpack

    with Path(f"{path}.gz").open("rb") as raw, unpack(raw) as file:
        while file.read(BLOCK_BYTES):
            pass


WORK = {
    "rankscope: read": read_with_rankscope,
    "rankscope: read and report": analyze_with_rankscope,
    "decoder: msgspec, typed (chosen)": decode_typed,
    "decoder: msgspec, untyped": decode_untyped,
    "decoder: orjson": decode_with_orjson,
    "decoder: json of Python": decode_with_stdlib,
    "decoder: simdjson, 8 fields taken": columns_with_simdjson,
    "decoder: Arrow's JSON reader": decode_with_arrow,
    "floor: simdjson DOM alone": parse_with_simdjson,
    "floor: gzip alone": unpack_gzip,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="also read a file of 2 GB")
    parser.add_argument("--source", type=Path, default=SOURCE)
    options = parser.parse_args()
    if not options.source.is_file():
        sys.exit(f"{options.source} is not here: give a real trace with --source")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        repeat_in_time(options.source, path, times=REPEATS)
        with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb", compresslevel=1) as packed:
            shutil.copyfileobj(plain, packed, BLOCK_BYTES)
        size_mb = path.stat().st_size / 1e6
        print(f"{size_mb:.0f} MB of JSON, one core, {options.rounds} rounds in turns, {load_note()}")
        samples = alternate(__file__, list(WORK), path, rounds=options.rounds)
        for name, of_name in samples.items():
            print(table_line(name, of_name, size_mb))
        _print_ratios(samples)
        _print_budget(path, median_of(samples["rankscope: read"], "peak_mib"))
        _measure_again(path, size_mb)
        if options.large:
            _measure_large(options.source, Path(folder) / "large.json")


def _print_ratios(samples: dict[str, list[Any]]) -> None:
    ours = median_of(samples["rankscope: read"], "cpu_s")
    for name in samples:
        if not name.startswith("rankscope"):
            print(f"reading takes {ours / median_of(samples[name], 'cpu_s'):5.2f} x the CPU time of {name}")


def _print_budget(path: Path, peak_mib: float) -> None:
    from rankscope.model.categories import Classifier
    from rankscope.readers.trace_file import read_trace

    with path.open("rb") as file:
        rows = len(read_trace(file, path.name, Classifier()).table)
    budget = BUDGET_MIB + BUDGET_BYTES_PER_ROW * rows / (1 << 20)
    print(f"{path.name}: {rows} rows kept, peak {peak_mib:.0f} MiB, budget {budget:.0f} MiB")


def _measure_again(path: Path, size_mb: float) -> None:
    """Wall time and peak memory of the command without the cache, then with an empty one, then with a full one."""
    time.sleep(SETTLE_SECONDS)
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "rankscope.cli.main", "analyze", str(path), "--format", "json"]
        environment = {**os.environ, "RANKSCOPE_CACHE": cache}
        for what, more in (
            ("without the cache", ["--no-cache"]),
            ("the first time", []),
            ("the second time", []),
        ):
            began = time.perf_counter()
            with subprocess.Popen([*command, *more], stdout=subprocess.DEVNULL, env=environment) as process:
                _, _, usage = os.wait4(process.pid, 0)
                process.returncode = 0  # it was waited for
            wall_s, peak_mib = time.perf_counter() - began, usage.ru_maxrss / 1024
            print(
                f"rankscope analyze, {size_mb:.0f} MB, {what:18} wall {wall_s:6.2f} s  peak {peak_mib:6.0f} MiB"
            )


def _measure_large(source: Path, path: Path) -> None:
    repeat_in_time(source, path, times=LARGE_REPEATS)
    size_mb = path.stat().st_size / 1e6
    for name in ("rankscope: read", "rankscope: read and report"):
        sample = measure_once(__file__, name, path)
        print(table_line(f"{name}, {size_mb:.0f} MB", [sample], size_mb))
        _print_budget(path, sample.peak_mib)


if __name__ == "__main__":
    answer_if_asked(WORK)
    main()

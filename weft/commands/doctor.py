"""weft doctor: report what this machine offers and how fast it is."""

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import torch

LIBRARIES = ("torch", "numpy", "tokenizers", "safetensors", "sacrebleu", "matplotlib", "tensorboardX")


@click.command()
def command() -> None:
    """Report versions, threads, devices and kernels, and measure the speed of this machine.

    It takes a few seconds. Add the output to a bug report.
    """
    import torch

    from weft import machine
    from weft.nn import devices
    from weft.nn.kernels.choice import processor
    from weft.store.files import cache_directory
    from weft.version import __version__

    click.echo(f"weft {__version__}, Python {platform.python_version()}, {platform.platform()}")
    click.echo("  " + ", ".join(f"{name} {_version(name)}" for name in LIBRARIES))
    name = processor()["model name"]
    click.echo(f"processor: {name}, {machine.cores()} of {os.cpu_count()} cores available")
    click.echo(
        f"threads: torch uses {torch.get_num_threads()}, "
        + ", ".join(f"{name}={os.environ.get(name)}" for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"))
    )
    if os.environ.get("OMP_WAIT_POLICY", "").lower() != "passive":
        click.echo(
            "  idle threads spin, up to ten times slower on a shared machine; set OMP_WAIT_POLICY=passive"
        )
    device = devices.choose("auto")
    fast = devices.fast_bfloat16(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    click.echo(f"device: {name}; bfloat16 in hardware: {'yes' if fast else 'no'}")
    in_training = "float32" if not fast else "bfloat16 autocast"
    click.echo(f"precision auto: {in_training} in training, float32 elsewhere")
    click.echo(f"token stores: {cache_directory() / 'stores'}")
    for line in _kernels(device):
        click.echo(line)
    click.echo("speed, median of 5:")
    for line in _measure(device):
        click.echo("  " + line)


def _kernels(device: "torch.device") -> list[str]:
    """The compiled code that runs here, and the kernels that are forced."""
    from weft import native
    from weft.native import jobs
    from weft.nn.kernels import choice, flash_linear_attention

    compiled = native.loaded()
    there = f"yes, {compiled.reason}" if compiled.library else f"no, so they run slower: {compiled.reason}"
    lines = [f"compiled recurrent cells, losses and search steps: {there}"]
    for source in jobs.CALLS:
        if compiled.library and native.loaded(source).library is None:
            lines.append(f"  without {source}: {native.loaded(source).reason}")
    reason = flash_linear_attention.why_not_on(device)
    said = f": {reason}" if reason else "; WEFT_CELLS=fla for flash-linear-attention in bfloat16"
    lines.append(f"cells with a matrix per head: in chunks of products{said}")
    lines += [f"  {switch} forces a kernel" for switch in choice.switched()]
    lines.append("kernels: chosen by shape and processor, docs/reference/kernels.md")
    return lines


def _measure(device: "torch.device") -> list[str]:
    import torch as t

    from weft.nn.kernels.cells.layer import lacks_bfloat16

    # large products only keep a GPU busy
    rows, size = (8192, 4096) if device.type == "cuda" else (1024, 512)
    x, w = t.randn(rows, size, device=device), t.randn(4 * size, size, device=device)
    flops = 2 * rows * size * 4 * size
    lines = []
    for dtype in (t.float32, t.bfloat16):
        a, b = x.to(dtype), w.to(dtype)
        seconds = _median(lambda a=a, b=b: t.nn.functional.linear(a, b), device)  # type: ignore[misc]
        lines.append(
            f"matrix product in {str(dtype).removeprefix('torch.')}: {flops / seconds / 1e9:,.0f} GFLOP/s"
        )
    inputs = t.randn(64, 20, 256, device=device)
    for kind in (t.nn.LSTM, t.nn.GRU):
        network = kind(256, 256, batch_first=True).to(device)
        times = []
        for fast in (False, True):

            def step(fast: bool = fast, network: object = network) -> None:
                with t.autocast(inputs.device.type, t.bfloat16, enabled=fast):
                    y, _ = network(inputs)  # type: ignore[operator]
                y.float().sum().backward()

            if fast and kind is t.nn.LSTM and device.type == "cpu" and lacks_bfloat16():
                continue
            times.append(_median(step, device))
        narrow = (
            f"{times[1] * 1e3:.1f} ms with bfloat16 ({times[0] / times[1]:.1f}x)"
            if times[1:]
            else "not available in bfloat16 on this processor"
        )
        lines.append(f"{kind.__name__} 256, training step of 64 x 20: {times[0] * 1e3:.1f} ms, {narrow}")
    if device.type == "cuda":
        return lines + _update(device, size=512, num_layers=6, rows=256, steps=64)
    return lines + _update(device, size=128, num_layers=4, rows=64, steps=32)


def _update(device: "torch.device", *, size: int, num_layers: int, rows: int, steps: int) -> list[str]:
    """What an update of a Transformer encoder costs; on a GPU also what Python needs to launch it."""
    import torch as t

    from weft.nn import devices

    low = devices.fast_bfloat16(device)

    layer = t.nn.TransformerEncoderLayer(size, size // 64, 4 * size, dropout=0.0, batch_first=True)
    model = t.nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False).to(device)
    optimiser = t.optim.AdamW(model.parameters(), fused=True)
    x = t.randn(rows, steps, size, device=device)

    def update() -> None:
        with t.autocast(device.type, t.bfloat16, enabled=low):
            loss = model(x).float().square().mean()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    seconds = _median(update, device)
    precision = "bfloat16" if low else "float32"
    shown = f"Transformer {num_layers} x {size}, update of {rows} x {steps} in {precision}"
    lines = [f"{shown}: {seconds * 1e3:.1f} ms, {rows * steps / seconds:,.0f} tokens/s"]
    if device.type == "cuda":
        launched = _median(update, device, waits=False)
        slow = launched > 0.7 * seconds
        advice = "larger batches, or training.cuda_graphs, use it better" if slow else "it is busy meanwhile"
        lines.append(f"Python launches it in {launched * 1e3:.1f} ms: {advice}")
        free, whole = (number / 2**30 for number in t.cuda.mem_get_info(device))
        lines.append(f"memory: {free:.1f} of {whole:.1f} GiB free")
    return lines


def _median(function: Callable[[], object], device: "torch.device", *, waits: bool = True) -> float:
    """Seconds of a call; a GPU computes later than Python calls it, and is waited for if asked."""
    import torch

    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    function()
    times = []
    for _ in range(5):
        wait()
        begun = time.perf_counter()
        function()
        if waits:
            wait()
        times.append(time.perf_counter() - begun)
    return sorted(times)[2]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"

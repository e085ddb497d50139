"""Packed rows of very different length: weft.nn beside torch.nn, CPU time, interleaved in one run.

python -m benchmarks.ragged [rounds]
"""

import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import weft.nn

SHAPES = ((50, 32, 128, 128), (50, 64, 256, 256), (100, 64, 256, 256), (200, 16, 512, 512))


def work(module: nn.Module, given: Tensor | PackedSequence, train: bool) -> Callable[[], None]:
    def once() -> None:
        with torch.set_grad_enabled(train):
            y = module(given)[0]
            if train:
                (y if isinstance(y, Tensor) else y.data).sum().backward()

    return once


def milliseconds(ways: list[Callable[[], None]], rounds: int) -> list[float]:
    times: list[list[float]] = [[] for _ in ways]
    for count in range(rounds + 2):
        for way, seen in zip(ways, times, strict=True):
            begin = time.process_time()
            way()
            if count > 1:
                seen.append(time.process_time() - begin)
    return [1e3 * sorted(seen)[rounds // 2] for seen in times]


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for name in ("LSTM", "GRU", "RNN"):
        for steps, rows, inside, size in SHAPES:
            theirs = getattr(nn, name)(inside, size, batch_first=True)
            ours = getattr(weft.nn, name)(inside, size, batch_first=True)
            ours.load_state_dict(theirs.state_dict())
            x = torch.randn(rows, steps, inside)
            lengths = torch.randint(1, steps + 1, (rows,))
            lengths[0] = steps
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            for train in (True, False):
                ways = [work(module, given, train) for module in (theirs, ours) for given in (x, packed)]
                padded, theirs_packed, ours_padded, ours_packed = milliseconds(ways, rounds)
                print(
                    f"{name:4} {(steps, rows, inside, size)} real {lengths.float().mean() / steps:.2f} "
                    f"{'train' if train else 'infer'} packed {ours_packed:.1f} ms: "
                    f"{padded / ours_packed:.2f}x torch padded, "
                    f"{theirs_packed / ours_packed:.2f}x torch packed, "
                    f"{ours_padded / ours_packed:.2f}x ours padded",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)

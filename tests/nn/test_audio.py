"""Log-mel frames equal their formula; masking happens only in training."""

import numpy as np
import pytest
import torch

from weft.errors import ConfigError
from weft.nn.embed.audio import Frames, log_mel, mel_filters, normalised


def triangles(rate: int, points: int, bins: int, low: float) -> np.ndarray:
    """Filter by filter, frequency by frequency."""
    mels = np.linspace(2595 * np.log10(1 + low / 700), 2595 * np.log10(1 + rate / 2 / 700), bins + 2)
    corners = 700 * (10 ** (mels / 2595) - 1)
    found = np.zeros((bins, points // 2 + 1))
    for place in range(bins):
        left, top, right = corners[place : place + 3]
        for k in range(points // 2 + 1):
            hertz = k * rate / points
            if left <= hertz <= top:
                found[place, k] = (hertz - left) / (top - left)
            elif top < hertz <= right:
                found[place, k] = (right - hertz) / (right - top)
    return found


def test_mel_filters_are_triangles() -> None:
    np.testing.assert_allclose(mel_filters(8000, 256, 13).numpy(), triangles(8000, 256, 13, 20.0), atol=1e-6)


def test_too_many_bands_are_refused() -> None:
    with pytest.raises(ConfigError, match="bins: 256 samples at 8000 Hz cannot resolve 150 bands"):
        mel_filters(8000, 256, 150)


@pytest.mark.parametrize("count", [1777, 200, 199, 1])
def test_log_mel_is_its_formula(count: int) -> None:
    rate, bins, length, step, points = 8000, 13, 200, 80, 256
    samples = np.random.default_rng(1).normal(size=count)
    found = log_mel(torch.from_numpy(samples), rate, bins=bins)
    filled = np.pad(samples, (0, max(0, length - count)))
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    want = []
    for begin in range(0, len(filled) - length + 1, step):
        power = np.abs(np.fft.rfft(filled[begin : begin + length] * window, points)) ** 2
        want.append(np.log(np.maximum(triangles(rate, points, bins, 20.0) @ power, 1e-6)))
    np.testing.assert_allclose(found.numpy(), np.stack(want), atol=1e-5)  # the filters are float32


def test_a_long_sound_is_computed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = torch.randn(5000, generator=torch.Generator().manual_seed(1))
    want = log_mel(samples, 8000, bins=13)
    for piece in (1, 7, len(want) - 1, len(want)):
        monkeypatch.setattr("weft.nn.embed.audio.PIECE", piece)
        torch.testing.assert_close(log_mel(samples, 8000, bins=13), want)


def test_normalised_bands_have_mean_0_and_deviation_1_and_silence_stays_finite() -> None:
    frames = normalised(3 + 5 * torch.randn(31, 7, generator=torch.Generator().manual_seed(1)))
    torch.testing.assert_close(frames.mean(0), torch.zeros(7), atol=1e-5, rtol=0)
    torch.testing.assert_close(frames.std(0, correction=0), torch.ones(7), atol=1e-5, rtol=0)
    assert normalised(log_mel(torch.zeros(4000), 8000, bins=13)).abs().max() == 0


def test_masks_hide_no_more_than_they_say_and_only_in_training() -> None:
    front = Frames(11, 5, masks=1, longest=4, widest=3)
    front.project.weight.data.zero_()
    torch.testing.assert_close(front.eval()(torch.ones(2, 29, 11)), front.project(torch.ones(2, 29, 11)))
    identity = Frames(11, 11, masks=1, longest=4, widest=3).train()
    identity.project.weight.data.copy_(torch.eye(11))
    identity.project.bias.data.zero_()
    torch.manual_seed(1)
    hidden = identity(torch.ones(7, 29, 11)) == 0
    times, bands = hidden.all(2), hidden.all(1)
    assert 0 < times.sum(1).max() <= 4 and 0 < bands.sum(1).max() <= 3
    assert torch.equal(hidden, times[:, :, None] | bands[:, None])

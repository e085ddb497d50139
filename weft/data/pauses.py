"""Long recordings cut at their pauses, by the loudness of their frames.

The program of an exported model contains this file: ../export/programs/__init__.py.
"""

import numpy as np


def cut_at_pauses(
    frames: np.ndarray, longest: int, *, pause: int, margin: int, smooth: int
) -> list[np.ndarray]:
    """The parts of frames [S, F] between pauses; all lengths are numbers of frames.

    A part without a pause that is longer still is cut where its second half is quietest.

    Args:
        frames: of a recording.
        longest: of a part, without its margins.
        pause: the shortest at which frames are cut.
        margin: what is kept of a pause on each side.
        smooth: the mean loudness of how many counts.

    Example:
        >>> frames = np.ones((60, 2), np.float32)
        >>> frames[30:40] = -1.0  # a pause
        >>> [len(one) for one in cut_at_pauses(frames, 40, pause=4, margin=2, smooth=1)]
        [32, 22]
    """
    loud = np.convolve(frames.mean(1), np.ones(smooth) / smooth, "same")
    low, high = np.quantile(loud, (0.1, 0.9))
    heard = np.flatnonzero(loud >= low + 0.3 * (high - low))
    ends = np.flatnonzero(np.diff(heard, append=len(frames) + pause) >= pause)
    begins = [0, *(ends[:-1] + 1)]
    found = []
    for begin, end in zip(heard[begins].tolist(), (heard[ends] + 1).tolist(), strict=True):
        while end - begin > longest:
            middle = begin + longest // 2
            cut = middle + int(loud[middle : begin + longest].argmin())
            found.append(frames[begin:cut])
            begin = cut
        found.append(frames[max(0, begin - margin) : end + margin])
    return found

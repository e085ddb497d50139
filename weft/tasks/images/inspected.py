"""A picture or a clip and its class: what else it could have been, and which places decided it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.probe import probe
from weft.tasks.images.predictor import PictureClassifier
from weft.tasks.shared.inspected.inspected import Choice, Examples, Inspected, Pictured
from weft.tasks.shared.inspected.pictures import asked, places
from weft.tasks.shared.labels.batch import LabelBatch
from weft.tasks.shared.pictures.batch import source

if TYPE_CHECKING:
    from weft.tasks.images.ready import ImagesReady


def inspected(
    ready: "ImagesReady", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Ready.inspected.

    The text is a file of a picture or clip; without one, one that the run was validated on.
    """
    classifier: Any = ready.predictor(model)
    picture, name = asked(ready.task.data, classifier.read, text)
    probs = classifier.probs(picture[None])[0]
    number = int(probs.argmax())
    order = np.argsort(-probs, kind="stable")[:12].tolist()
    others = [(classifier.names[n], float(probs[n])) for n in order]
    front = classifier.model.embed
    x, mask = source(picture[None], front.places)
    device = next(classifier.model.parameters()).device
    label = f"{classifier.names[number]} ({probs[number]:.1%})"
    return Inspected(
        text=name,
        answer=label,
        source=places(front.grid),
        batch=LabelBatch(x, mask, torch.tensor([number]), 1).to(device),
        choices=[Choice("", classifier.names[number], float(probs[number]), others)],
        chosen_what="the classes of the picture",
        picture=weighed(classifier, picture, number),
    )


def weighed(classifier: PictureClassifier, picture: np.ndarray, number: int) -> Pictured:
    """How much each pixel, and each place of a pool that looks, weighed for a class.

    Of pixels the share |dL/dx . x| summed over colours, L being the class's log-probability; pixels run from
    -1 to 1. Of a pool with learned queries also its attention, the mean of the queries.
    """
    front = classifier.model.embed
    x, mask = source(picture[None], front.places)  # type: ignore[arg-type]
    device = next(classifier.model.parameters()).device
    x = x.to(device).requires_grad_()
    with torch.enable_grad(), probe() as seen:
        logp = classifier.model(x, mask.to(device))[0, 0, number]
        (slope,) = torch.autograd.grad(logp, x)
    pixels = (slope * x).sum(-1).abs()[0].detach().float().cpu().numpy()
    looks = [("gradient times pixel", pixels / max(float(pixels.sum()), 1e-12))]
    own = [one for one in seen["attention"] if one.shape[2] == front.places]
    if own:
        weights = own[-1][0].mean(0).detach().float().cpu().numpy()
        looks.insert(0, ("attention of the pool", weights.reshape(front.grid)))  # type: ignore[arg-type]
    return Pictured(picture, looks, f"what weighed for {classifier.names[number]}")

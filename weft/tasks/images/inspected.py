"""A picture or a clip and its class: the probability of each class, and the places that decided it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.probe import probe
from weft.tasks.images.predictor import PictureClassifier
from weft.tasks.inspection import Choice, Examples, Inspected, Pictured, asked, places
from weft.tasks.labels.batch import LabelBatch
from weft.tasks.pictures.pictures import source

if TYPE_CHECKING:
    from weft.tasks.images.ready import ImagesPipeline


def inspected(
    pipeline: "ImagesPipeline", model: Any, text: str | None, examples: Examples, options: Mapping[str, Any]
) -> Inspected:
    """See Pipeline.inspected.

    The text is the name of a picture or clip; without one, a validation picture is shown.
    """
    classifier: Any = pipeline.predictor(model)
    picture, name = asked(pipeline.task.data, classifier.read, text)
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
    """The weight of each pixel for a class, and that of each place if the pool attends.

    A pixel's weight is its share of |dL/dx . x|, summed over colours, where L is the class's log-probability
    and pixels run from -1 to 1. A pool with learned queries also shows its attention, averaged over them.
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

"""OpenNMT-py 3.5: Transformer, and the recurrent model with input feeding, through its own trainer's parts.

Its own options build the model, its LossCompute gives the loss, its Optimizer steps, its Translator
searches (the incremental decoder with its caches). Read next: its onmt/trainer.py, `_gradient_accumulation`.
"""

import sys
from types import ModuleType

for _unused in ("spacy",):  # a transform imports it that no option here asks for
    sys.modules.setdefault(_unused, ModuleType(_unused))

import numpy as np  # noqa: E402
import onmt.opts  # noqa: E402
import torch  # noqa: E402
from onmt.inputters.inputter import dict_to_vocabs  # noqa: E402
from onmt.model_builder import build_model  # noqa: E402
from onmt.translate import GNMTGlobalScorer  # noqa: E402
from onmt.translate.translator import Translator  # noqa: E402
from onmt.utils.loss import LossCompute  # noqa: E402
from onmt.utils.optimizers import Optimizer  # noqa: E402
from onmt.utils.parse import ArgumentParser  # noqa: E402

from peers.engine import (  # noqa: E402
    BETAS,
    CLIP_NORM,
    PEAK_RATE,
    SMOOTHING,
    WARM_UP,
    Batch,
    Engine,
    Sizes,
    learning_rate,
    until_eos,
)

SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]


class OpenNMT(Engine):
    """onmt NMTModel."""

    def __init__(self, sizes: Sizes, dtype: str) -> None:
        if dtype != "float32":
            raise ValueError(f"opennmt: {dtype} on a CPU is not offered by OpenNMT-py; float32 only")
        options = _options(sizes)
        names = SPECIAL + [str(i) for i in range(len(SPECIAL), sizes.vocabulary)]
        words = {"src": names, "tgt": names, "data_task": "seq2seq", "decoder_start_token": "<s>"}
        self.vocabs = dict_to_vocabs(words)
        self.options = options
        self.model = build_model(options, options, self.vocabs, None, -1)
        self.loss = LossCompute.from_opts(options, self.model, self.vocabs["tgt"])
        self.optimiser = Optimizer.from_opt(self.model, options)
        self.optimiser._learning_rate_decay_fn = lambda step: learning_rate(step) / PEAK_RATE

    def update(self, batch: Batch) -> float:
        self.model.train()
        source = torch.from_numpy(batch.source)[..., None]
        target = torch.from_numpy(batch.target)[..., None]
        lengths = torch.from_numpy(batch.source_lengths)
        self.optimiser.zero_grad(set_to_none=True)
        output, attention = self.model(source, target, lengths)
        rows = {"src": source, "tgt": target, "srclen": lengths}
        loss, statistics = self.loss(rows, output, attention)
        self.optimiser.backward(loss / batch.target_tokens)
        if self.model.decoder.state != {}:
            self.model.decoder.detach_state()
        self.optimiser.step()
        return statistics.loss / batch.target_tokens

    def search(
        self, source: np.ndarray, lengths: np.ndarray, width: int, shortest: int, longest: int
    ) -> list[list[int]]:
        if self.model.training:
            self.model.eval()
        translator = Translator(
            self.model,
            self.vocabs,
            beam_size=width,
            n_best=1,
            min_length=shortest,
            max_length=longest,
            max_length_ratio=0,
            random_sampling_topk=1 if width == 1 else 0,  # its greedy search is asked for as top-1
            global_scorer=GNMTGlobalScorer(1.0, 0.0, "avg", "none"),
            report_score=False,
        )
        rows = {"src": torch.from_numpy(source)[..., None], "srclen": torch.from_numpy(lengths)}
        found = translator.translate_batch(rows, attn_debug=False)
        return [until_eos(best[0].tolist()) for best in found["predictions"]]


def _options(sizes: Sizes):
    parser = ArgumentParser()
    onmt.opts.train_opts(parser)
    common = {
        "dropout": sizes.dropout,
        "attention_dropout": 0.0,
        "optim": "adam",
        "adam_beta1": BETAS[0],
        "adam_beta2": BETAS[1],
        "learning_rate": PEAK_RATE,
        "warmup_steps": WARM_UP,
        "max_grad_norm": CLIP_NORM,
        "label_smoothing": SMOOTHING,
        "param_init": 0.0,
    }
    if sizes.model == "transformer":
        own = {
            "encoder_type": "transformer",
            "decoder_type": "transformer",
            "layers": sizes.layers,
            "hidden_size": sizes.width,
            "word_vec_size": sizes.width,
            "transformer_ff": sizes.inner,
            "heads": sizes.heads,
        }
        flags = ["-position_encoding", "-param_init_glorot"]
    else:
        own = {
            "encoder_type": "brnn",
            "decoder_type": "rnn",
            "rnn_type": "LSTM",
            "layers": 1,
            "hidden_size": sizes.recurrent,
            "word_vec_size": sizes.recurrent,
            "global_attention": "mlp",
            "input_feed": 1,
        }
        common["param_init"] = 0.1
        flags = []
    words = [word for name, value in (common | own).items() for word in (f"-{name}", str(value))]
    shared = ["-share_vocab", "-share_embeddings", "-share_decoder_embeddings"]
    files = ["-data", "{}", "-src_vocab", "none"]
    options, _ = parser.parse_known_args(files + words + flags + shared)
    ArgumentParser.update_model_opts(options)
    ArgumentParser.validate_model_opts(options)
    return options

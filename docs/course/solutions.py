"""Answers to the exercises that weft/testing/exercises.py checks; each part stands alone."""

# %% tokens-perplexity
import math


def perplexity(probs):
    return math.exp(-sum(math.log(p) for p in probs) / len(probs))


# %% tokens-kneser
prob = (1 - 0.5) / 3 + 3 * 0.5 / 3 * 0.2250


# %% tokens-merges
word = "newest"


# %% tokens-sizes
import numpy as np

from weft.ngram.kneser_ney import kneser_ney
from weft.text.vocabulary import EOS, SOS, Vocabulary


def nats_per_character(train, valid, size):
    vocabulary = Vocabulary.train(train, kind="bpe", size=size)

    def stream(lines):
        rows = vocabulary.encode_batch(lines)
        return np.array([t for ids in rows for t in (SOS, *ids, EOS)])

    new = stream(valid)
    model = kneser_ney(stream(train), size=size, order=3, start=SOS)
    letters = sum(len(line) + 1 for line in valid)
    return -model.score(new)[new != SOS].sum() / letters


# %% tokens-zero
import math
from collections import Counter


def unsmoothed(train, new, order):
    def grams(text):
        return [tuple(text[at : at + order]) for at in range(len(text) - order + 1)]

    counts = Counter(grams(train))
    contexts = Counter(gram[:-1] for gram in grams(train))
    logp = []
    for gram in grams(new):
        if not counts[gram]:
            return math.inf
        logp.append(math.log(counts[gram] / contexts[gram[:-1]]))
    return math.exp(-sum(logp) / len(logp))


# %% vectors-softmax
softmax = 50_000 * 100
negative = (1 + 5) * 100


# %% vectors-bag
votes = {"good": 1, "bad": -1, "not good": -2, "not bad": 2}


# %% vectors-window
def pairs(words, window):
    return [
        (words[i], words[j])
        for i in range(len(words))
        for j in range(max(0, i - window), min(len(words), i + window + 1))
        if i != j
    ]


# %% vectors-two
lowest = 0.5


# %% elman-delay
import torch

W = torch.tensor([[1.0], [0.0], [0.0]])
U = torch.diag(torch.ones(2), -1)
b = torch.zeros(3)

# %% elman-size
import torch

from weft.nn.cells.elman import Elman


def triples(rows, count):
    a, b = torch.randint(2, (2, rows, count))
    return torch.stack([a, b, a ^ b], 2).view(rows, -1).float()


def train(size, seed, updates=1500):
    torch.manual_seed(seed)
    cell, head = Elman(1, size), torch.nn.Linear(size, 1)
    optimiser = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=0.01)
    for _ in range(updates):
        bits = triples(32, 8)[..., None]
        h, _ = cell(bits[:, :-1], cell.start(bits[:, 0]))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(head(h), bits[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    bits = triples(2000, 8)[..., None]
    with torch.no_grad():
        h, _ = cell(bits[:, :-1], cell.start(bits[:, 0]))
        wrong = ((head(h) > 0) != (bits[:, 1:] > 0)).float().mean(0)[:, 0]
    return wrong[1::3].mean().item()


# %% elman-shapes
shapes = ["aligned", "aligned", "unaligned", "one to many", "many to one"]


# %% elman-sigmoid
sigmoid, tanh = 0.25, 1


# %% elman-jordan
prob = 0.5


# %% bptt-number
import math

steps = math.ceil(math.log(0.001) / math.log(0.95))

# %% bptt-scalar
import math

state = 1.0
for _ in range(100):
    state = math.tanh(2 * state)
left = (2 * (1 - state**2)) ** 10

# %% bptt-every
bound = sum(0.5**n for n in range(11, 100))

# %% bptt-inputs
import torch


def norm(cell, x):
    state, product = cell.start(x[:, 0]), None
    for t in range(x.shape[1]):
        h, state = cell.step(x[:, t], state)
        factor = (1 - h[0] ** 2)[:, None] * cell.weight_h
        product = torch.eye(cell.size, dtype=x.dtype) if product is None else factor @ product
    return torch.linalg.matrix_norm(product, 2).item()


# %% bptt-relu
from weft.nn.cells.elman import Elman

cell = Elman(4, 24, activation="relu", weights="identity")

# %% lstm-parameters
lstm = 4 * (200 * 100 + 200**2 + 200)
elman = 200 * 100 + 200**2 + 200


# %% lstm-backward
zero, factor = {"f", "i", "c"}, 1


# %% lstm-bias
import math


def left(bias, steps):
    return (1 / (1 + math.exp(-bias))) ** steps


# %% lstm-1997
from weft.nn.cells.lstm import LSTM

cell = LSTM(2, 64, forget_gate=False)

# %% gru-keep
from weft.nn.cells.gru import GRU

cell = GRU(2, 64, forget_bias=20.0)

# %% gru-before
import torch


def run(cell, x):
    W, U, size = cell.weight_x, cell.weight_h, cell.size
    h, states = torch.zeros(len(x), size, dtype=x.dtype), []
    for t in range(x.shape[1]):
        gx = x[:, t] @ W.T + cell.bias
        r, u = torch.sigmoid(gx[:, : 2 * size] + h @ U[: 2 * size].T).chunk(2, 1)
        h = u * h + (1 - u) * torch.tanh(gx[:, 2 * size :] + (r * h) @ U[2 * size :].T)
        states.append(h)
    return torch.stack(states, 1)


# %% gru-light
import torch


def apart(stack, ones):
    y, _ = stack(torch.ones(1, ones, 1, dtype=next(stack.parameters()).dtype))
    return (y[0, -1] - y[0, -2]).abs().max().item()


# %% stacks-parameters
def layer(inputs, size=100):
    return 2 * 4 * (size * inputs + size**2 + size)


concatenated = layer(64) + layer(200)
summed = layer(64) + layer(100)


# %% stacks-parallel
def steps(layers, positions, bidirectional):
    return layers * positions if bidirectional else layers + positions - 1


# %% stacks-cloze
import torch

from weft.nn.cells.elman import Elman
from weft.nn.recurrent import Stack


def sees_itself(sizes):
    torch.manual_seed(1)
    stack = Stack(4, sizes, cell=Elman, bidirectional=True)
    x = torch.randn(1, 9, 4, requires_grad=True)
    y, _ = stack(x)
    half = y.shape[2] // 2
    (y[0, 3, :half].sum() + y[0, 5, half:].sum()).backward()
    return x.grad[0, 4].abs().max().item()


# %% encdec-chain
mean, mode = 10, 1

# %% encdec-sampling
import math

half = 100 * math.log(100)
tenth = 100 * math.log(9 * 100)

# %% encdec-tags
pairs = 3 * 2
unseen = pairs - 4

# %% encdec-both
from weft.nn.cells.gru import GRU
from weft.nn.encoders.recurrent import RecurrentEncoder

encoder = RecurrentEncoder(32, sizes=(64,), cell=GRU, bidirectional=True)


# %% encdec-reverse
def distances(length, reverse):
    return [2 * t - 1 if reverse else length for t in range(1, length + 1)]


# %% attention-scaled
def moments(d):
    return 0, d


# %% attention-scores
from weft.nn.cells.gru import GRU
from weft.nn.decoders.recurrent import RecurrentDecoder
from weft.nn.encoders.recurrent import RecurrentEncoder
from weft.nn.scores import Dot

encoder = RecurrentEncoder(32, sizes=(32,), bidirectional=True)
decoder = RecurrentDecoder(32, encoder, sizes=(64,), cell=GRU, enters="late", score=Dot, key_size=64)


# %% attention-queries
query, mean = [2.0, 0.0], [0.0, 0.0]


# %% attention-uniform
def weights(mask):
    return mask / mask.sum(1, keepdim=True)


# %% decoding-alpha
import math

alpha = math.log2(math.log(0.099) / math.log(0.11))

# %% decoding-coin
from math import comb

sequence = 0.6**20
ways = [comb(20, n) * 0.6**n * 0.4 ** (20 - n) for n in range(21)]
prob = max(ways)
heads = ways.index(prob)


# %% decoding-top-p
def kept(probs, p):
    total, count = 0.0, 0
    for one in sorted(probs, reverse=True):
        if total >= p:
            break
        total, count = total + one, count + 1
    return count


# %% self-attention-cost
parameters = 4 * 512**2 + 4 * 512
one_head, eight_heads = 1000**2, 8 * 1000**2


# %% self-attention-similar
def attend(x):
    return (x @ x.T).softmax(-1) @ x


# %% self-attention-pixels
def convolution(places, channels):
    return 9 * places * channels**2


def block(places, channels):
    return 2 * places * channels**2 + places**2 * channels


equal = 7 * 256


# %% self-attention-mask
import torch


def hidden(energy, mask):
    return energy.masked_fill(mask == 0, -torch.inf).softmax(-1)


def multiplied(energy, mask):
    weights = energy.softmax(-1) * mask
    return weights / weights.sum(-1, keepdim=True)


# %% self-attention-ablate
def off(weights, head):
    weights = weights.clone()
    weights[:, head] = 1 / weights.shape[-1]
    return weights


# %% positions-row
from math import cos, sin

row = [sin(3), cos(3), sin(0.3), cos(0.3)]


# %% positions-alibi
import torch


def bias(length, slope):
    place = torch.arange(length)
    return -slope * (place[:, None] - place).abs()


# %% positions-longer
answers = {"learned": False, "sinusoidal": True}


# %% transformer-bert
blocks = 12 * (12 * 768**2 + 13 * 768)
embeddings = (30_522 + 512 + 2) * 768
parameters = blocks + embeddings + 2 * 768 + 768**2 + 768


# %% transformer-tied
saved = 50_257 * 768
untied = 12 * (12 * 768**2 + 13 * 768) + 2 * saved + 1024 * 768 + 2 * 768
share = saved / untied


# %% transformer-norm
def rate(update, warmup):
    return 0.002 * min(1, (update + 1) / warmup)


# %% transformer-longer
import torch


def energy(query, key, t, s):
    speeds = 10000 ** (-torch.arange(0, len(query), 2) / len(query))

    def turned(x, place):
        a, b, angle = x[0::2], x[1::2], place * speeds
        return a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()

    return sum((q @ k).item() for q, k in zip(turned(query, t), turned(key, s)))


# %% recurrence-half
decay = 0.5 ** (1 / 1000)
left = 2.0**-10


# %% recurrence-parity
b, eigenvalue = [0, 2], 1 - 2


# %% recurrence-keys
import torch


def error(count, texts=20):
    keys = torch.nn.functional.normalize(torch.randn(count, 64), dim=1)
    S, errors = torch.zeros(64, 5), []
    for _ in range(texts):
        values = torch.randn(count, 5)
        for key, value in zip(keys, values):
            S += key[:, None] * (value - S.T @ key)
        errors.append((keys @ S - values).square().mean().sqrt().item())
    return sum(errors) / texts


# %% pretraining-share
def unharmed(share):
    return 1 - share + 0.1 * share


# %% pretraining-mask
loss = 0


# %% pretraining-mix
def mix(layers, a, gamma):
    return gamma * (a.softmax(0)[:, None, None] * layers).sum(0)


# %% payoff-both
import math


def mixed(first, second, share):
    pairs = zip(first, second)
    return -sum(math.log(share * a + (1 - share) * b) for a, b in pairs) / len(first)


# %% evaluating-baseline
from statistics import mean, stdev

T95 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262}


def beats(scores, baseline):
    half = T95[len(scores) - 1] * stdev(scores) / len(scores) ** 0.5
    return mean(scores) - half > baseline


# %% evaluating-holm
p = [0.012, 0.020, 0.030, 0.400]
uncorrected = [one for one in p if one <= 0.05]
bonferroni = [one for one in p if one <= 0.05 / len(p)]
holm = []
for rank, one in enumerate(sorted(p)):
    if one > 0.05 / (len(p) - rank):
        break
    holm.append(one)


# %% evaluating-seeds
seeds = 8

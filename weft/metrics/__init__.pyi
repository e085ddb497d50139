"""The public names of the package, imported when they are first used (weft/lazy.py)."""

from weft.metrics.accuracy import Accuracy as Accuracy
from weft.metrics.bleu import Bleu as Bleu
from weft.metrics.cer import Cer as Cer
from weft.metrics.chrf import Chrf as Chrf
from weft.metrics.cider import cider_d as cider_d
from weft.metrics.f1 import by_class as by_class
from weft.metrics.f1 import macro_f1 as macro_f1
from weft.metrics.intervals import PairedComparison as PairedComparison
from weft.metrics.intervals import compare as compare
from weft.metrics.intervals import compare_repeated as compare_repeated
from weft.metrics.intervals import confidence as confidence
from weft.metrics.meteor import Meteor as Meteor
from weft.metrics.metric import Metric as Metric
from weft.metrics.metric import MetricScore as MetricScore
from weft.metrics.rouge_n import Rouge as Rouge
from weft.metrics.rouge_n import rouge_l as rouge_l
from weft.metrics.scored import ScoreWithBaselines as ScoreWithBaselines
from weft.metrics.sentence_bleu import SentenceBleu as SentenceBleu
from weft.metrics.span_f1 import SpanF1 as SpanF1
from weft.metrics.tags import TagAccuracy as TagAccuracy
from weft.metrics.wer import Wer as Wer

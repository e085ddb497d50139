"""What `weft.load` returns, one class for each task, imported when it is first used (weft/lazy.py)."""

from weft.tasks.caption.predictor import Captioner as Captioner
from weft.tasks.classify.predictor import TextClassifier as TextClassifier
from weft.tasks.draw.predictor import Painter as Painter
from weft.tasks.elmo.predictor import ContextComparer as ContextComparer
from weft.tasks.embeddings.predictor import WordVectors as WordVectors
from weft.tasks.forecast.predictor import ForecastPredictor as ForecastPredictor
from weft.tasks.images.predictor import ImageClassifier as ImageClassifier
from weft.tasks.language.predictor import TextWriter as TextWriter
from weft.tasks.masked.predictor import GapFiller as GapFiller
from weft.tasks.memory.predictor import Rememberer as Rememberer
from weft.tasks.multilingual.predictor import MultilingualTranslator as ManyTranslator  # noqa: F401  its earlier name
from weft.tasks.multilingual.predictor import MultilingualTranslator as MultilingualTranslator
from weft.tasks.predictor import Predictor as Predictor
from weft.tasks.seq2seq.translator import Translator as Translator
from weft.tasks.speech.predictor import Transcriber as Transcriber
from weft.tasks.tag.predictor import WordTagger as WordTagger

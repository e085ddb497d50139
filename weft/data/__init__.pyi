"""The public names of the package, imported when they are first used (weft/lazy.py)."""

from weft.data.audio import Sound as Sound
from weft.data.audio import read_sound as read_sound
from weft.data.batching import Batches as Batches
from weft.data.conllu import ConlluSentence as ConlluSentence
from weft.data.conllu import read_sentences as read_sentences
from weft.data.corpora import corpus as corpus
from weft.data.images import read_captions as read_captions
from weft.data.images import read_picture as read_picture
from weft.data.labelled import LabelledExample as LabelledExample
from weft.data.labelled import LabelledText as LabelledText
from weft.data.lines import read_lines as read_lines
from weft.data.parallel import ParallelText as ParallelText
from weft.data.parallel import SentencePair as SentencePair
from weft.data.plain import PlainText as PlainText
from weft.data.series import SeriesTable as SeriesTable
from weft.data.series import TimeSeries as TimeSeries
from weft.data.series import read_series as read_series
from weft.data.tables import TableFile as TableFile
from weft.data.vectors import read_vectors as read_vectors
from weft.data.vectors import write_vectors as write_vectors

"""The public names of the package, imported when they are first used (weft/lazy.py)."""

from weft.search.beam import beam_search as beam_search
from weft.search.beam import coverage_penalty as coverage_penalty
from weft.search.diverse import diverse_search as diverse_search
from weft.search.filters import ban as ban
from weft.search.filters import min_p as min_p
from weft.search.filters import narrow as narrow
from weft.search.filters import temperature as temperature
from weft.search.filters import top_k as top_k
from weft.search.filters import top_p as top_p
from weft.search.filters import typical_p as typical_p
from weft.search.greedy import greedy_search as greedy_search
from weft.search.hypotheses import Hypotheses as Hypotheses
from weft.search.hypotheses import to_lists as to_lists
from weft.search.offered import Narrowing as Narrowing
from weft.search.sampling import sample as sample
from weft.search.step import Step as Step
from weft.search.step import least_length as least_length
from weft.search.step import no_repeat as no_repeat
from weft.search.step import prefix as prefix
from weft.search.step import ruled as ruled
from weft.search.trace import Trace as Trace

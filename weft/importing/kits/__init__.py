"""The toolkits whose checkpoints can be imported. Read next: kit.py."""

from weft.importing.kits import eole, fairseq, joeynmt, marian, opennmt, sockeye
from weft.importing.kits.kit import Kit

KITS: tuple[Kit, ...] = (joeynmt.KIT, fairseq.KIT, opennmt.KIT, eole.KIT, sockeye.KIT, marian.KIT)

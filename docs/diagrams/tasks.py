"""Which task suits which data; the boxes of tasks are links to their pages."""

from pathlib import Path

from kit import Diagram

PAGES = Path(__file__).resolve().parents[1] / "guides" / "tasks"
HEIGHT = 44  # of a row, in pixels

CHOICES = {
    "texts and their\ntranslations": (
        ("one language into another", "translate"),
        ("several languages, one model", "multilingual"),
    ),
    "texts and their summaries": (("write a summary", "summarise"),),
    "texts with a class": (("name the class of a text", "classify"),),
    "sentences with a tag\nfor each word": (("tag each word", "tag"),),
    "plain text": (
        ("continue it, or score sentences", "language"),
        ("fill gaps in it", "masked"),
        ("vectors of words in a sentence", "elmo"),
        ("one vector for each word", "embeddings"),
    ),
    "numbers over time": (("forecast the next values", "forecast"),),
    "pictures or clips with a class": (("name the class of a picture", "images"),),
    "pictures and captions": (
        ("describe a picture", "caption"),
        ("draw a picture from a caption", "draw"),
    ),
    "recordings and transcripts": (("write down what is said", "speech"),),
    "no data": (("test the memory of a network", "memory"),),
}
"""For each kind of data, what one may want from it, and the name of the task."""


def choose_task() -> Diagram:
    """From the data, through what is wanted, to the task."""
    rows = sum(map(len, CHOICES.values()))
    d = Diagram(
        760,
        HEIGHT * rows + 46,
        "A chart with three columns. Left: the data that you have. Middle: what the model should do with "
        "them. Right: the name of the task. The table below says the same in words.",
    )
    for x, words in ((125, "You have"), (420, "You want to"), (665, "Task")):
        d.text(x, 18, words, "title")
    row = 0
    for data, wanted in CHOICES.items():
        first = 60 + HEIGHT * row
        middle = first + HEIGHT * (len(wanted) - 1) / 2
        for number, (aim, task) in enumerate(wanted):
            y = first + HEIGHT * number
            bend = ((235, middle), (262, middle), (262, y)) if y != middle else ((235, y),)
            d.line(*bend, (292, y))
            d.text(300, y, aim, "left")
            d.line((556, y), (600, y), kind="faint")
            page = (PAGES / f"{task}.md").exists()
            d.pieces += [f'<a href="{task}.html">'] * page
            d.box(665, y, task, w=126, h=28)
            d.pieces += ["</a>"] * page
        d.box(125, middle, data, w=220, h=40 if "\n" in data else 30, kind="data")
        row += len(wanted)
    return d

"""Votes: the directives `{vote} VERDICT` for a claim, `{question} LETTER` for a question with options.

The first paragraph is the claim or the question; a question's options are a list. The rest is the verdict or
the answer, in a `<details>`, which opens after the vote, and by hand where scripts are off.
A page writes a claim as a `<details>` itself, which every viewer of Markdown shows; it becomes the directive.
Read next: live.py; ../_static/live/vote.js, which asks for the vote and counts a class.
"""

import re

from docutils import nodes
from docutils.parsers.rst import directives
from live import Live, open_part, titled
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

VERDICTS = ("holds", "contradicted", "undecided", "not shown at this scale")
LETTERS = "ABCD"


class Vote(Live):
    """The place of a vote: `verdict`, and the attributes of a live part."""


class Verdict(nodes.General, nodes.Element):
    """What opens."""


class VoteDirective(SphinxDirective):
    """A claim and its verdict."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = {"title": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        verdict = directives.choice(self.arguments[0], VERDICTS)
        if not self.content or "title" not in self.options:
            raise self.error("a vote needs :title: and a claim")
        number = re.fullmatch(r"Claim (\d+)", self.options["title"])
        return [self.vote(_("Claim {0}").format(number[1]) if number else titled(self), verdict, 1)]

    def vote(self, title: str, verdict: str, asked: int) -> Vote:
        """A vote of which the first `asked` blocks are always shown."""
        vote = Vote(name="vote", title=title, verdict=verdict)
        self.state.nested_parse(self.content, self.content_offset, vote)
        shown, rest = vote.children[:asked], vote.children[asked:]
        shown[0]["classes"].append("live-try")
        vote.children = []
        vote += [*shown, Verdict("", *rest)]
        return vote


class QuestionDirective(VoteDirective):
    """A question, its options, and the answer."""

    option_spec = {}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        verdict = directives.choice(self.arguments[0], LETTERS.lower()).upper()
        vote = self.vote(_("A question"), verdict, 2)
        if not isinstance(vote[1], nodes.bullet_list) or len(vote[1]) > len(LETTERS) or not vote[2].children:
            raise self.error("a question needs a paragraph, a list of at most four options, and an answer")
        vote[1]["classes"].append("live-options")
        return [vote]


def open_verdict(self: HTML5Translator, verdict: Verdict) -> None:
    """The start of what opens."""
    self.body.append(f'<details class="live-verdict" data-verdict="{verdict.parent["verdict"]}">')
    title = _("The answer") if verdict.parent["verdict"] in LETTERS else _("The verdict")
    self.body.append(f"<summary>{title}</summary>\n")


def close_verdict(self: HTML5Translator, verdict: Verdict) -> None:
    """Its end."""
    self.body.append("</details>\n")


def close_vote(self: HTML5Translator, vote: Vote) -> None:
    """The end of a vote."""
    self.body.append("</section>\n")


_PLAIN = re.compile(
    r"<details>\n<summary><b>(?P<title>.+?)\.</b> (?P<claim>.+)</summary>\n\n"
    r"(?P<rest>\*\*(?P<verdict>.+?)\.?\*\*[^`]*?)\n\n</details>"
)
"""A claim and its verdict in plain Markdown."""


def as_votes(app: Sphinx, page: str, source: list[str]) -> None:
    """Make directives of the claims of a page."""

    def directive(one: re.Match[str]) -> str:
        head = f"```{{vote}} {one['verdict'].lower()}\n:title: {one['title']}\n{one['claim']}"
        return f"{head}\n\n{one['rest']}\n```"

    source[0] = _PLAIN.sub(directive, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.setup_extension("live")
    app.add_node(Vote, html=(open_part, close_vote))
    app.add_node(Verdict, html=(open_verdict, close_verdict))
    app.add_directive("vote", VoteDirective)
    app.add_directive("question", QuestionDirective)
    app.connect("source-read", as_votes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

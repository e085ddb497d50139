"""Writes docs/claims.md, and the claims in docs/course/votes.md: python experiments/verdicts.py

The words come from the docstrings of the scripts, the numbers from docs/pictures/claims. Read next: study.py.
"""

import ast
import re
from pathlib import Path
from typing import Any

from study import NOT_SHOWN, ROOT, judged, probability, published, result, table

PAGE, VOTES = ROOT / "docs" / "claims.md", ROOT / "docs" / "course" / "votes.md"
HEAD = """# Fourteen claims, measured

Papers and lectures make these claims about sequence models. A short script tests each of them on one CPU core, in
seconds or in a few minutes. Vote first, alone or with a class; then run the script, or read what it found.
A part of a claim that can be proved is called a **theorem**. In claim 11, "most early" means that the true words in the
first half of the training lead to a better model than in the second half.

## Vote before you run

Choose, and the verdict opens.

"""
RULES = """
To run the test of claim 6, for example: `python experiments/06_scale.py`. The result goes to `build/claims`. With
`--publish` it replaces the one shown here, and `python experiments/verdicts.py` regenerates this page.

## How a verdict is reached

A claim is split into parts, which are written in its script and fixed before anything is measured. Each part says
that one quantity is larger than another. Both are measured with the same seeds, at least five, which were not used
while the script was written. Where the quality of different models is compared (claims 1 to 4, 8 and 14), each has the best
of several learning rates, chosen on other seeds and, for text, on other text. The paired differences give a mean, its
95 % interval and a p-value (Student's t, two-sided).

The page has {measured} measured parts. If each were tested at 5 %, two or three could be judged wrongly by chance. So the
p-values are corrected by Holm's method over all {measured} ([chapter 16](course/evaluating.md) teaches it), and where a
claim was tried more than once, its p-values are multiplied by the number of tries first. The verdict on a part follows
from the corrected p-value:

- below 0.05, the difference above zero: the part **holds**;
- below 0.05, the difference below zero: it is **contradicted**;
- otherwise it is **undecided**, which does not mean that the quantities are equal.

With that, the chance that even one of the {measured} is judged wrongly is at most about 5 %. The intervals in the tables are not
corrected, so an interval may lie above zero although the part is undecided.

The models are small and trained for seconds. Some claims are about large models, long training or a GPU; their scripts
say so before the run. Such a part may hold here, but these runs cannot contradict it: if it does not hold, it is **not
shown at this scale**, which says nothing about the claim where it is meant.

These designs are not blind. Claims 3, 4, 8 and 14 had been contradicted by earlier designs when their parts were marked
as beyond this scale. For claim 14 it was seen on the tuning seeds that after 100 updates residual Elman stacks learn less
than plain ones; 16 layers and 300 updates were chosen after that, and with fewer updates the part might have been
contradicted. Claim 8's loss to reach was changed after its second try. Holm's correction and the number of tries do not
cover such choices.

If a part allows a small loss, that number replaces zero and is stated. Of a theorem the script only checks that the
code agrees. A claim is true only if all its parts are. So it is
contradicted if one part is; if none is, it is not shown at this scale if one part is not; then undecided if one part
is; and else it holds. In the pictures, bands and bars are 95 % intervals of the mean over seeds, and small dots are
single seeds.

Machine: {machine}; one core, shared with other work.
"""


def page() -> str:
    """The page's text."""
    scripts = sorted((ROOT / "experiments").glob("[0-9]*.py"))
    words = [paragraphs(path) for path in scripts]
    found = list(judged(published()).values())
    votes = [vote(n, text["Claim"], one) for n, (text, one) in enumerate(zip(words, found, strict=True), 1)]
    measured = sum(not part["theorem"] for one in found for part in one["parts"])
    machines = "; ".join(dict.fromkeys(one["machine"] for one in found))
    rows = [[str(n), f"**{one['verdict']}**", tally(one)] for n, one in enumerate(found, 1)]
    verdicts = ["", "## All verdicts", "", *table(["", "Verdict", "Parts"], rows)]
    sections = [section(n, *both) for n, both in enumerate(zip(words, found, strict=True), 1)]
    return "\n".join(
        [HEAD + "\n".join(votes), RULES.format(machine=machines, measured=measured), *sections, *verdicts, ""]
    )


def paragraphs(script: Path) -> dict[str, str]:
    """The named paragraphs of a script's docstring: Claim, Tested, Picture, Tries, Limits, Source."""
    text = ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""
    blocks = [" ".join(block.split()) for block in text.split("\n\n")]
    named = [
        re.fullmatch(r"(Claim|Tested|Picture|Tries|Limits|Source)(?: \d+)?: (.+)", block) for block in blocks
    ]
    return {one[1]: one[2] for one in named if one}


def minutes(one: dict[str, Any]) -> str:
    """CPU time, rounded for planning a lesson."""
    seconds = one["cpu_seconds"]
    return f"{seconds} s" if seconds < 60 else f"{seconds / 60:.0f} min"


def vote(number: int, claim: str, one: dict[str, Any]) -> str:
    """A claim to vote on, and what opens then."""
    return f"""<details>
<summary><b>Claim {number}.</b> {claim}</summary>

**{one["verdict"].capitalize()}**: {tally(one)}. [What was measured](#claim-{number}); to measure it again takes {minutes(one)}.

</details>
"""


def votes(claims: str, before: str) -> str:
    """The page of votes: its words as they were, and the claims of the other page with their verdicts alone."""
    found = re.findall(r"<summary><b>Claim (\d+)\.</b> (.+)</summary>\n\n\*\*(.+?)\*\*", claims)
    blocks = [
        f"<details>\n<summary><b>Claim {number}.</b> {claim}</summary>\n\n"
        f"**{verdict}.** [What was measured](../claims.md#claim-{number})\n\n</details>\n"
        for number, claim, verdict in found
    ]
    return before.partition("<details>")[0] + "\n".join(blocks)


def tally(one: dict[str, Any]) -> str:
    """How many parts have each verdict."""
    verdicts = [part["verdict"] for part in one["parts"]]
    return ", ".join(f"{verdicts.count(kind)} × {kind}" for kind in dict.fromkeys(verdicts))


def section(number: int, words: dict[str, str], one: dict[str, Any]) -> str:
    """A claim's part of the page."""
    lines = [f"## Claim {number}", "", f"*{words['Claim']}* **{one['verdict'].capitalize()}.**", ""]
    rows = [(part["says"], result(part), probability(part), part["verdict"]) for part in one["parts"]]
    escaped = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    lines += [
        f"Tested: {words['Tested']}",
        "",
        *table(["Part", "Difference and 95 % interval", "Corrected p", "Verdict"], escaped),
    ]
    beyond = dict.fromkeys(part["beyond"] for part in one["parts"] if part["verdict"] == NOT_SHOWN)
    if beyond:
        lines += ["", f"Not shown at this scale: the claim is about {'; '.join(beyond)}."]
    lines += [
        "",
        f"![{words['Picture']}](pictures/claims/{number:02}.svg)",
        "",
        f"*{words['Picture']}*",
    ]
    if one["numbers"]:
        lines += [
            "",
            "Also measured: " + "; ".join(f"{name}: {value}" for name, value in one["numbers"].items()) + ".",
        ]
    if "Tries" in words:
        lines += ["", f"Tries: {words['Tries']} The p-values are multiplied by {one['tries']} for that."]
    lines += ["", f"Limits: {words['Limits']} Source: {words['Source']}"]
    seeds = f"seeds {one['seeds'][0]} to {one['seeds'][-1]}"
    lines += ["", f"`{one['command']}`, {seeds}, CPU time {one['cpu_seconds']} s.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    VOTES.write_text(votes(page(), VOTES.read_text("utf-8")), "utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {page().count('## Claim')} claims")

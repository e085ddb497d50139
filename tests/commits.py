"""Check the messages of commits: `room: imperative` in 72 characters, and a body with reason and evidence.

    python -m tests.commits FILE       the message of one commit, as git's hook commit-msg gives it
    python -m tests.commits            the commits of the last day: `make check` runs this

Commits before START are not judged, and neither are merges.
`make setup-dev` installs the hook (.pre-commit-config.yaml). Only the standard library is needed.
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.changed import git

START = 1795910400
"""2026-11-29 in UTC: from then on every clone that was set up has the hook."""

HOURS = 24
LENGTH = 72
WORDS = 8
MERGE = re.compile(r"Merge (branch|branches|commit|tag|remote-tracking|pull request|the)\b")
SUBJECT = re.compile(r"([a-z][\w.,/ -]*): (?=(\w+))\S")
TRAILER = re.compile(r"[A-Z][\w-]+: \S")
VERB = re.compile(r"focus|bias|.*ss|embed|(ne|fe|spe|se|he|exce|proce)ed|(br|str|r|sw)ing")
NO_VERB = re.compile(
    r".*(s|ed|ing)|\d+|an?|the|one|two|three|every|each|all|both|no|some|more|most|fewer|less|what|which|who|where|when"
    r"|how|why|of|on|in|at|for|from|to|with|by|and|or|not"
)


def faults(message: str) -> list[str]:
    """What is wrong with a commit's message, in sentences."""
    lines = [line.rstrip() for line in message.partition("# ------------------------ >8")[0].split("\n")]
    lines = "\n".join(line for line in lines if not line.startswith("#")).strip().split("\n")
    subject = lines[0]
    if MERGE.match(subject):
        return []
    found = []
    if not (parts := SUBJECT.match(subject)) or parts[1] == "wip":
        found.append(f"expected `room: what it does`, such as `search: refuse a width of 0`, got {subject!r}")
    elif NO_VERB.fullmatch(word := parts[2].lower()) and not VERB.fullmatch(word):
        found.append(f"expected an imperative after the room, such as `add` or `refuse`, got {parts[2]!r}")
    if len(subject) > LENGTH:
        found.append(f"expected at most {LENGTH} characters in the first line, got {len(subject)}")
    if lines[1:2] not in ([], [""]):
        found.append("expected an empty second line")
    words = [word for line in lines[1:] if not TRAILER.match(line) for word in line.split()]
    if len(words) < WORDS:
        found.append(
            f"expected a body with the reason and the evidence ({WORDS} words or more), got {len(words)}"
        )
    return found


def new_commits() -> list[str]:
    """Hashes of the commits to judge, oldest first."""
    since = max(START, int(git("log", "-1", "--format=%ct")[0]) - HOURS * 3600)
    return [one for one in git("rev-list", "--reverse", "--no-merges", f"--since=@{since}", "HEAD") if one]


def main(arguments: list[str]) -> int:
    """Exit code 1 if a message breaks the rules."""
    if arguments:
        judged = [("this message", Path(arguments[0]).read_text("utf-8"))]
    else:
        try:
            commits = new_commits()
        except (OSError, subprocess.CalledProcessError):
            print("No git checkout: no message was read.")
            return 0
        judged = [(one[:8], "\n".join(git("log", "-1", "--format=%B", one))) for one in commits]
    wrong = [f"{name}: {fault}" for name, message in judged for fault in faults(message)]
    print("\n".join(wrong) if wrong else f"Messages of commits that were read: {len(judged)}, all in order.")
    if wrong:
        print('CONTRIBUTING.md, "Commits", says what a message needs.')
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

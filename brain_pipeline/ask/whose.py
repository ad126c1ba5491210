"""Whose mail a question is about: the member it is asked for, and the members that it names."""

from __future__ import annotations

from collections.abc import Collection

from brain_pipeline.family.people import People

FOR, AGAINST = 0.5, -1.0  # of the log-odds: mail of a member who is named, and mail of others only


class Whose:
    """Which mail may answer a question, and which is preferred.

    Args:
        people: what is known of the members.
        question: members that it names are preferred.
        member: whose mail alone may answer; a name that nobody has leaves all mail.
    """

    def __init__(self, people: People, question: str, member: str | None = None) -> None:
        known = people.known(member) if member else None
        self.only = people.emails_of(known) if known else None
        self._people = people
        self._named = people.named_in(question)

    def preferences(self, emails: Collection[str]) -> dict[str, float]:
        """What speaks for and against emails, in log-odds; those that concern nobody are left out."""
        if not self._named:
            return {}
        assigned = self._people.of(emails)
        concerned = {email: {each.member for each in found} for email, found in assigned.items()}
        return {email: FOR if members & self._named else AGAINST for email, members in concerned.items()}

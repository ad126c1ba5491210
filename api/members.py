"""The family's members: what was learned of their mail, and how to teach more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from api.routes import BrainRoute, TheBrain
from api.schemas import DetailBody, UnavailableBody
from brain_pipeline.family.people import Member

_PATTERN = (
    "`sender:`, `domain:`, `list:`, `subject:` (a word), `name:` or `email:` (a Message-ID), and what follows, as "
    "`sender:coach@gulls.example`"
)
_NAME: JsonDict = {"minLength": 1, "maxLength": 100, "pattern": r"\S"}


class RuleBody(BaseModel):
    """How often mail of a pattern was said to be a member's."""

    pattern: str = Field(description=_PATTERN)
    times: int = Field(ge=1, description="how often it was said to be this member's")
    of: int = Field(ge=1, description="how often it was said to be anybody's")


class MemberBody(BaseModel):
    """A member of the family."""

    name: str
    nicknames: list[str]
    rules: list[RuleBody]
    emails: int = Field(ge=0, description="how many emails concern this member")

    @classmethod
    def of(cls, member: Member) -> Self:
        """The body of a member record."""
        rules = [RuleBody(pattern=pattern, times=times, of=of) for pattern, times, of in member.rules]
        return cls(name=member.name, nicknames=list(member.nicknames), rules=rules, emails=member.emails)


class MembersBody(BaseModel):
    """All members."""

    members: list[MemberBody]

    @classmethod
    def of_all(cls, members: Sequence[Member]) -> Self:
        """The body of member records."""
        return cls(members=list(map(MemberBody.of, members)))


class PatternLesson(BaseModel):
    """Whose the mail of a pattern is."""

    model_config = ConfigDict(extra="forbid")

    member: str = Field(json_schema_extra=_NAME)
    pattern: str = Field(description=_PATTERN)


class SourceLesson(BaseModel):
    """Whose one email is; that of its sender is probably theirs, too."""

    model_config = ConfigDict(extra="forbid")

    member: str = Field(json_schema_extra=_NAME)
    source: str = Field(description="the `id` of a source")


class UnlearnedBody(BaseModel):
    """What was forgotten."""

    rules: int = Field(ge=0, description="rules that were forgotten")


router = APIRouter(route_class=BrainRoute, tags=["members"])


@router.get(
    "/brain/members",
    response_model=MembersBody,
    summary="The family's members and what was learned of their mail",
    responses={503: {"model": UnavailableBody}},
)
def members(brain: TheBrain) -> MembersBody:
    """The members that the settings name, and those that were learned of."""
    return MembersBody.of_all(brain.people.all())


@router.post(
    "/brain/members",
    response_model=MembersBody,
    summary="Say whose mail it is",
    responses={**{status: {"model": DetailBody} for status in (400, 408, 413, 422)}, 503: {"model": UnavailableBody}},
)
def learn(brain: TheBrain, lesson: PatternLesson | SourceLesson) -> MembersBody:
    """Teaches a rule, which applies to all mail at once."""
    if isinstance(lesson, PatternLesson):
        brain.learn_assignment(lesson.pattern, lesson.member)
    else:
        brain.correct_assignment(lesson.source, lesson.member)
    return MembersBody.of_all(brain.people.all())


@router.delete(
    "/brain/members",
    response_model=UnlearnedBody,
    summary="Forget a rule",
    responses={422: {"model": DetailBody}, 503: {"model": UnavailableBody}},
)
def forget(
    brain: TheBrain,
    pattern: Annotated[str, Query(description=_PATTERN)],
    member: Annotated[str | None, Query(description="whose; default everybody's")] = None,
) -> UnlearnedBody:
    """Undoes what was learned of a pattern."""
    return UnlearnedBody(rules=brain.forget_assignment(pattern, member))

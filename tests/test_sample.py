from __future__ import annotations

from email import policy
from email.parser import BytesParser

import pytest

from brain_pipeline.sample import sample_mail

FILES = sorted(sample_mail().glob("*.eml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_message_is_well_formed_and_named_by_its_day(path):
    message = BytesParser(policy=policy.default).parsebytes(path.read_bytes())
    assert not [defect for part in message.walk() for defect in part.defects]
    assert message["date"].datetime.date().isoformat() == path.name[:10]


def test_the_showcase_mail_is_there():
    message = BytesParser(policy=policy.default).parsebytes(
        (sample_mail() / "2025-09-15-field-trip-permission-slip.eml").read_bytes()
    )
    assert message["subject"] == "Field Trip Permission Slip"
    assert "$5" in message.get_content()

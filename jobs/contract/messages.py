"""Sentences that a person may read, marked so that the web can translate them."""


def gettext_noop(message: str) -> str:
    """Mark `message` for the translators' catalog and return it unchanged.

    Django's `makemessages` collects calls of this name; the contract itself must not import Django.
    """
    return message

"""Secrets as users hand them over: a prompt that shows nothing, else stdin. Never kept, never shown."""

import sys

import click


def read_secret(noun: str) -> str:
    """The secret from a prompt on a terminal, else the text of stdin without its last line break."""
    if sys.stdin.isatty():
        return str(click.prompt(noun.capitalize(), hide_input=True, err=True))
    return checked(sys.stdin.buffer.read(), noun, "stdin")


def checked(text: bytes, noun: str, source: str) -> str:
    """The secret in a text. Raises UsageError when there is none."""
    secret = text.decode("utf-8", "replace").rstrip("\r\n")
    if not secret:
        raise click.UsageError(f"{source} holds no {noun}")
    return secret

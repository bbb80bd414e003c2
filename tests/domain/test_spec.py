"""Which variables are kept from sight by their names."""

import pytest

from torchyard.domain.spec import looks_secret


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "WANDB_API_KEY",
        "OPENAI_APIKEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASS",
        "PASS",
        "GITHUB_PAT",
        "SSH_PASSPHRASE",
        "SENTRY_DSN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AUTHORIZATION",
        "BEARER",
        "SESSION_COOKIE",
        "PRIVATE_KEY_PEM",
        "SLACK_WEBHOOK_URL",
        "db.password",
    ],
)
def test_secret(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    ["PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "COMPASS", "BYPASS", "PWD", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "LR"],
)
def test_not_secret(name: str) -> None:
    assert not looks_secret(name)

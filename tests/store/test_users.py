"""Users, keys and rules in the store: whole and back again, and a database from before there were any."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from torchyard.domain.errors import Conflict
from torchyard.domain.user import AccessKey, KeyKind, User
from torchyard.store import access_keys, access_rules, users
from torchyard.store.access_rules import AccessRule
from torchyard.store.database import open_database, read, write
from torchyard.store.sealing import Sealer

NOW = datetime(2026, 12, 1, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_database(tmp_path / "a.db")
    yield made
    made.dispose()


def user(name: str = "ann", number: int = 1) -> User:
    return User(id=f"u{number}", username=name, created_at=NOW, updated_at=NOW, created_by="root")


def key(name: str, owner: str = "u1", kind: KeyKind = KeyKind.ACCESS_KEY) -> AccessKey:
    return AccessKey(
        id=f"{owner}-{kind.value}-{name}",
        client_id=f"c-{owner}-{kind.value}-{name}",
        name=name,
        kind=kind,
        user_id=owner,
        secret="0" * 64,
        created_by="ann",
        created_at=NOW,
        updated_at=NOW,
    )


USERS = st.builds(
    User,
    id=st.uuids().map(str),
    username=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40),
    created_at=MOMENTS,
    updated_at=MOMENTS,
    created_by=st.just("root"),
    owner=st.booleans(),
    enabled=st.booleans(),
    password=st.none() | st.just("$argon2id$v=19"),
    temporary=st.booleans(),
    generation=st.integers(0, 2**31),
    last_login=st.none() | MOMENTS,
)


@given(USERS)
def test_a_user_comes_back_whole(tmp_path_factory: pytest.TempPathFactory, found: User) -> None:
    engine = open_database(tmp_path_factory.getbasetemp() / "users.db")
    with write(engine) as c:
        users.insert(c, found)
        assert users.fetch(c, found.id) == found
        users.remove(c, found.id)
        assert users.fetch(c, found.id) is None
    engine.dispose()


def test_the_owner_is_one_and_may_be_renamed(engine: Engine) -> None:
    with write(engine) as c:
        first = users.ensure_owner(c, "ann", NOW)
        assert users.ensure_owner(c, "ann", NOW).id == first.id
        users.ensure_owner(c, "ann-smith", NOW)
        (only,) = users.listing(c)
        users.insert(c, user("ben", 2))
        assert users.ensure_owner(c, "ben", NOW).username == "ann-smith"
    assert (only.id, only.username, only.owner) == (first.id, "ann-smith", True)


def test_names_are_taken_by_user_and_kind(engine: Engine) -> None:
    with write(engine) as c:
        users.insert(c, user())
        users.insert(c, user("ben", 2))
        access_keys.insert(c, key("a"))
        access_keys.insert(c, key("a", kind=KeyKind.SERVICE_ACCOUNT))
        access_keys.insert(c, key("a", "u2"))
    with pytest.raises(Conflict, match="key a already"), write(engine) as c:
        access_keys.insert(c, key("a"))
    with pytest.raises(Conflict, match="user ann already"), write(engine) as c:
        users.insert(c, user("ann", 3))
    with read(engine) as c:
        assert [k.user_id for k in access_keys.listing(c, KeyKind.ACCESS_KEY)] == ["u1", "u2"]


def test_with_a_user_go_their_keys_and_rules(engine: Engine) -> None:
    rule = AccessRule(user_id="u1", role_id=3, scope_type="project", scope_id="1", created_at=NOW, created_by="root")
    with write(engine) as c:
        users.insert(c, user())
        access_keys.insert(c, key("a"))
        access_rules.insert(c, rule)
        access_keys.used(c, key("a").id, NOW)
        found = access_keys.of_client(c, key("a").client_id)
        assert found is not None and found.last_used == NOW
        users.remove(c, "u1")
        assert not access_keys.listing(c, KeyKind.ACCESS_KEY) and not access_rules.listing(c)


def test_a_key_is_derived_for_each_purpose(tmp_path: Path) -> None:
    sealer, other = Sealer(tmp_path / "a.key"), Sealer(tmp_path / "b.key")
    derived = {sealer.derive("tokens"), sealer.derive("access keys"), other.derive("tokens")}
    assert len(derived) == 3 and all(len(one) == 32 for one in derived)
    assert Sealer(tmp_path / "a.key").derive("tokens") == sealer.derive("tokens")
    assert not any(one in (tmp_path / "a.key").read_bytes() for one in derived)

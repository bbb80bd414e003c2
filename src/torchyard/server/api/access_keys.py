"""Access keys under the names that Run:ai gave them over time. One implementation; shapes differ by name."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import JSONResponse, Response

from torchyard.control import access_keys
from torchyard.domain.user import AccessKey, KeyKind
from torchyard.server.body import Body
from torchyard.server.deps import ActorNow, YardNow
from torchyard.server.permit import SELF
from torchyard.server.shapes import TENANT_ID, Json, moment


class NewKey(Body):
    """A key to make."""

    name: Annotated[str, Field(max_length=255)]


class Switch(Body):
    """On or off."""

    enabled: bool


@dataclass(frozen=True, slots=True)
class Style:
    """What one of the names looks like from outside."""

    path: str
    noun: str
    kind: KeyKind
    secret: str
    envelope: str | None = None
    """The list is an object with this name; else a bare array."""


STYLES = (
    Style("access-keys", "AccessKey", KeyKind.ACCESS_KEY, "clientSecret", "accessKeys"),
    Style("service-accounts", "ServiceAccount", KeyKind.SERVICE_ACCOUNT, "clientSecret"),
    Style("apps", "App", KeyKind.SERVICE_ACCOUNT, "secret"),
    Style("user-applications", "UserApplication", KeyKind.ACCESS_KEY, "secret"),
)


def _router(style: Style) -> APIRouter:
    router = APIRouter(prefix=f"/{style.path}", tags=["access keys"])
    kind = style.kind

    @router.post("", status_code=201, operation_id=f"create{style.noun}", dependencies=[SELF])
    async def create(body: NewKey, yard: YardNow, actor: ActorNow) -> Response:
        """Make a key of one's own. Its secret is in this answer and nowhere else."""
        key, secret = await access_keys.create(yard, kind, body.name, actor)
        return JSONResponse(_key(key) | {style.secret: secret}, status_code=201)

    @router.get("", operation_id=f"list{style.noun}s", dependencies=[SELF])
    async def listing(yard: YardNow, actor: ActorNow) -> Response:
        """One's own keys, without their secrets."""
        shown = [_key(key) for key in await access_keys.listing(yard, kind, actor)]
        return JSONResponse({style.envelope: shown} if style.envelope else shown)

    @router.get("/{key_id}", operation_id=f"get{style.noun}", dependencies=[SELF])
    async def get(key_id: str, yard: YardNow, actor: ActorNow) -> Response:
        """One key, without its secret."""
        return JSONResponse(_key(await access_keys.get(yard, kind, key_id, actor)))

    @router.patch("/{key_id}", operation_id=f"update{style.noun}", dependencies=[SELF])
    async def update(key_id: str, body: Switch, yard: YardNow, actor: ActorNow) -> Response:
        """Switch a key on or off; its tokens follow at once."""
        return JSONResponse(_key(await access_keys.enable(yard, kind, key_id, body.enabled, actor)))

    @router.delete("/{key_id}", status_code=204, operation_id=f"delete{style.noun}", dependencies=[SELF])
    async def delete(key_id: str, yard: YardNow, actor: ActorNow) -> Response:
        """Delete a key; its tokens are worth nothing from now on."""
        await access_keys.delete(yard, kind, key_id, actor)
        return Response(status_code=204)

    @router.post("/{key_id}/secret", operation_id=f"rotate{style.noun}", dependencies=[SELF])
    async def rotate(key_id: str, yard: YardNow, actor: ActorNow) -> Response:
        """A new secret, shown once; the old one and its tokens are worth nothing from now on."""
        return JSONResponse({style.secret: await access_keys.rotate(yard, kind, key_id, actor)})

    return router


def _key(k: AccessKey) -> Json:
    return {
        "id": k.id,
        "clientId": k.client_id,
        "name": k.name,
        "enabled": k.enabled,
        "tenantId": TENANT_ID,
        "createdBy": k.created_by,
        "createdAt": moment(k.created_at),
        "updatedAt": moment(k.updated_at),
        "lastLogin": moment(k.last_used),
    }


routers = tuple(_router(style) for style in STYLES)

"""Why is it not making progress? The verdict on a workload."""

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from torchyard.control import explain
from torchyard.domain.cause import Fault
from torchyard.domain.verdict import Verdict
from torchyard.policy.permissions import Action, Resource
from torchyard.server.deps import YardNow
from torchyard.server.permit import there
from torchyard.server.shapes import Json, moment

router = APIRouter(prefix="/workloads", tags=["workloads"])


@router.get(
    "/{workload_id}/explain", operation_id="explainWorkload", dependencies=[there(Resource.WORKLOADS, Action.READ)]
)
async def verdict(workload_id: str, yard: YardNow) -> Response:
    """One sentence, the evidence for it, and what happens next."""
    return JSONResponse(_verdict(await explain.explain(yard, workload_id)))


def _verdict(v: Verdict) -> Json:
    return {
        "phase": v.phase,
        "sentence": v.sentence,
        "cause": v.cause,
        "fault": None if v.fault is None else _fault(v.fault),
        "evidence": list(v.evidence),
        "nextStep": v.next_step,
    }


def _fault(f: Fault) -> Json:
    return {
        "replica": f.replica,
        "rank": f.rank,
        "code": f.code,
        "signal": f.signal,
        "exit": f.exit,
        "exception": f.exception,
        "frame": f.frame,
        "at": moment(f.at),
        "lastLines": list(f.last_lines),
    }

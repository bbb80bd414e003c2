"""The isolation that a submission gets on this engine, or the sentence why it cannot have it."""

from torchyard.domain.errors import Invalid, Problem
from torchyard.domain.isolation import Choice as Choice
from torchyard.domain.isolation import choose, specs_of
from torchyard.domain.observation import Capabilities
from torchyard.domain.spec import Isolation, Submission

_TOOLS = {
    "sandbox": "it needs bubblewrap: apt install bubblewrap (dnf install bubblewrap)",
    "container": "it needs podman or docker: apt install podman (dnf install podman)",
}


def pick(submission: Submission, capabilities: Capabilities, *, folder_exists: bool) -> Choice:
    """The isolation and why. Raises Invalid with the install line and the other way out when it cannot be."""
    choice = choose(submission, folder_exists=folder_exists)
    match choice.isolation:
        case Isolation.PROCESS:
            return choice
        case Isolation.SANDBOX:
            able = capabilities.sandbox
        case Isolation.CONTAINER:
            able = capabilities.container
            if not all(spec.image for spec in specs_of(submission)):
                raise _refusal(choice, "every replica needs an image, and one names none", "name it in spec.image")
    if able:
        return choice
    name = choice.isolation.value
    why_not = (capabilities.why_not or {}).get(name) or _TOOLS[name]
    raise _refusal(choice, f"{name} cannot run here: {why_not}", _way_out(submission))


def _refusal(choice: Choice, why_not: str, way_out: str) -> Invalid:
    message = f"{choice.why}; {why_not}"
    return Invalid(message, way_out, (Problem("torchyard.isolation", message, "isolation-unavailable"),))


def _way_out(submission: Submission) -> str:
    if submission.torchyard.isolation is not None:
        return "or leave the isolation out, or choose --isolation process"
    return (
        "or choose --isolation process: images and mount paths are then not honoured, "
        "and $TORCHYARD_VOLUME_<CLAIM> says where a claim is"
    )

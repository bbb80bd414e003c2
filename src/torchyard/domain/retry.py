"""Does another attempt follow one that failed, and when: causes, budgets, back-off."""

from dataclasses import replace
from datetime import timedelta

from torchyard.domain.cause import INFRA_BUDGET, Budget, Cause, Diagnosis, budget_of
from torchyard.domain.draft import Draft
from torchyard.domain.quantities import show_duration
from torchyard.domain.workload import Attempt, EndingBecause, Phase, Workload

EQUAL_FAULTS = 3
"""So many equal faults in a row without progress end a workload early."""
LONG_RUN = 60.0
"""An attempt that ran this long (seconds) is retried at once."""
MAX_BACKOFF = 60.0


def fail_or_retry(draft: Draft, attempt: Attempt, diagnosis: Diagnosis, ran: float, checkpointed: bool) -> None:
    """An attempt has failed: another one follows, at once or later, or the workload has."""
    ending = attempt.ending
    if ending is not None and ending.because in (EndingBecause.DEADLINE, EndingBecause.PENDING_DEADLINE):
        cause = Cause.DEADLINE if ending.because is EndingBecause.DEADLINE else Cause.START
        diagnosis = replace(diagnosis, cause=cause, sentence=ending.sentence)
        draft.set_attempt(replace(attempt, diagnosis=diagnosis))
    cause = diagnosis.cause or Cause.UNKNOWN
    progressed = _count(draft, cause, diagnosis, checkpointed)
    stop = _why_no_retry(draft.w, cause, diagnosis)
    if stop is not None:
        draft.settle(Phase.FAILED, stop, warning=True)
        return
    losses = draft.w.user_faults + draft.w.infra_losses
    delay = 0.0 if losses <= 1 or progressed or ran >= LONG_RUN else min(MAX_BACKOFF, 2.0 ** (losses - 2))
    draft.w = replace(draft.w, not_before=draft.now + timedelta(seconds=delay) if delay else None)
    when = f" in {show_duration(delay)}" if delay else ""
    draft.note("AttemptFailed", f"attempt {attempt.number} ended (cause {cause}): {diagnosis.sentence}", warning=True)
    draft.enter(Phase.RESUMING, f"attempt {attempt.number + 1} follows{when}: {diagnosis.sentence}")


def _count(draft: Draft, cause: Cause, diagnosis: Diagnosis, checkpointed: bool) -> bool:
    """Charge the attempt to its budget; True when it got further than any before it."""
    w = draft.w
    further = diagnosis.step is not None and diagnosis.step > (w.best_step or 0)
    progressed = further or checkpointed
    w = replace(w, best_step=diagnosis.step if further else w.best_step)
    match budget_of(cause):
        case Budget.USER:
            print_ = f"{cause.value}|{diagnosis.fault.fingerprint if diagnosis.fault else ''}"
            equal = w.equal_faults + 1 if print_ == w.last_fault and not progressed else 1
            w = replace(w, user_faults=w.user_faults + 1, last_fault=print_, equal_faults=equal)
        case Budget.INFRA:
            w = replace(w, infra_losses=w.infra_losses + 1)
        case Budget.NONE:
            pass
    draft.w = w
    return progressed


def _why_no_retry(w: Workload, cause: Cause, diagnosis: Diagnosis) -> str | None:
    """The sentence of a workload that gets no further attempt; None when it gets one."""
    limit = w.submission.spec.backoff_limit
    match budget_of(cause):
        case Budget.NONE:
            return diagnosis.sentence
        case Budget.INFRA:
            spent = w.infra_losses > INFRA_BUDGET
            return f"{diagnosis.sentence} ({w.infra_losses} attempts were lost that way)" if spent else None
        case Budget.USER:
            if w.user_faults > limit:
                return diagnosis.sentence if limit == 0 else f"{diagnosis.sentence} (backoffLimit {limit} is used up)"
            if w.equal_faults >= EQUAL_FAULTS:
                return f"{diagnosis.sentence} (the same fault {EQUAL_FAULTS} times in a row, with no progress)"
            return None

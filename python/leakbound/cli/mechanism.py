"""The command that audits a mechanism in a file, in the environment of its package."""

from pathlib import Path
from typing import Annotated

import typer

from leakbound import ApproxDP, GaussianDP, PureDP
from leakbound.claims import Claim
from leakbound.cli import options
from leakbound.cli.options import Delivery, argument, command, option
from leakbound.mechanisms import Case, audit_mechanism, load_case

app = typer.Typer()

MECHANISM = (
    "CASE is a file of Python code with [bold]run(data, rng)[/], the neighbouring inputs "
    "[bold]d0[/] and [bold]d1[/], [bold]claim[/] (as --family of the other commands names it, such "
    'as "pure" or "approx:1e-5"), [bold]parameter[/] (the claimed number), and optionally '
    "[bold]score(outputs)[/]. It runs in the environment of --python, which needs NumPy but "
    "not leakbound. The audit stops once the claim is refuted."
)
EXAMPLES = "leakbound mechanism count.py --python env/bin/python --most-runs 2000 --out report"
Claimed = Annotated[
    str,
    option("eps=E", "Guarantee to check, instead of that of the case. Also eps=E,delta=D or mu=M."),
]


@command(app, "mechanism", EXAMPLES, MECHANISM)
def mechanism(
    file: Annotated[Path, argument("CASE", "A file of Python code: see above.")],
    *,
    python: Annotated[
        Path | None,
        option("FILE", "Python that runs the case, 3.8 or later (default: the present one)."),
    ] = None,
    workers: Annotated[int, option("N", "Processes that share the runs.")] = 1,
    timeout: Annotated[
        float | None, option("S", "Seconds a run may take; a longer one is an output, too.")
    ] = None,
    most_runs: Annotated[int, option("N", "Runs at most.")] = 5000,
    claim: Claimed = "",
    confidence: options.Confidence = 0.95,
    seed: options.Seed = None,
    store: Annotated[
        Path | None, option("FILE", "Keep outputs in an .npz file: the same command resumes.")
    ] = None,
    delivery: Delivery,
) -> None:
    """Audit a mechanism by running it."""
    goal = options.parse_claim(claim, ("eps", "eps,delta", "mu"))
    with load_case(file, python=python, workers=workers, timeout=timeout) as case:
        claimed, parameter = _claimed(goal, case)
        result = audit_mechanism(
            case.run,
            case.d0,
            case.d1,
            claimed,
            parameter=parameter,
            score=case.score,
            confidence=confidence,
            most_runs=most_runs,
            seed=seed,
            path=store,
        )
    delivery.conclude(result, file, {})


def _claimed(goal: dict[str, float], case: Case) -> tuple[Claim, float]:
    """Return the claim to test and its parameter: of the command line, else of the case."""
    if "mu" in goal:
        if isinstance(case.claim, GaussianDP):
            return case.claim, goal["mu"]
        return GaussianDP(), goal["mu"]
    if "delta" in goal:
        return ApproxDP(delta=goal["delta"]), goal["eps"]
    if "eps" in goal:
        if isinstance(case.claim, ApproxDP):
            return case.claim, goal["eps"]
        return PureDP(), goal["eps"]
    return case.claim, case.parameter

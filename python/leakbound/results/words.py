"""What a result says in words, written once for the report, the figures and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from leakbound._base.formatting import number, percent
from leakbound.results.panoramia import PanoramiaResult
from leakbound.results.zero_run import ZeroRunResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from leakbound._base.types import Correction
    from leakbound.claims.tradeoff import TradeOff
    from leakbound.report.parts import Assumption
    from leakbound.results.one_run import AuditResult

    Result = AuditResult | PanoramiaResult


DELTA = 1e-5
"""The δ at which bounds on families of trade-off functions are put in words."""
_SMALL = 0.1
"""A bound below this proves leakage, but little: it is stated as a number, and no more is said."""


def is_family(result: Result) -> TypeGuard[AuditResult]:
    """Return whether the result bounds a family of trade-off functions."""
    return not isinstance(result, PanoramiaResult) and result.is_family


def shown(result: Result) -> float:
    """Return the bound as an ε: of a family, the one that its curve has at `DELTA`."""
    return _at(result.rejected, result) if is_family(result) else result.bound


def reachable(result: Result) -> float:
    """Return the ceiling as an ε: of a family, the one that its curve has at `DELTA`."""
    return _at(result.rejectable, result) if is_family(result) else result.ceiling


def _at(curve: TradeOff | None, result: AuditResult) -> float:
    """Return ε at `DELTA`, failures of the claim on top, which no ε covers."""
    failures = result.claim.delta
    return 0.0 if curve is None else float(curve.epsilon(DELTA + (1 - DELTA) * failures))


def headline(result: Result) -> str:
    """Return the verdict in one sentence.

    Parameters
    ----------
    result : AuditResult or PanoramiaResult
        The result to put in words.

    Returns
    -------
    str
        What it proves, or that it proves nothing.
    """
    if result.kind == "invalid":
        return (
            f"Invalid: ε = {number(shown(result))} is the best of many cuts, and the choice was "
            "not paid for. It proves nothing."
        )
    if result.kind == "estimate":
        return _estimate(result)
    if isinstance(result, ZeroRunResult) and result.withheld:
        return (
            "Withheld: the propensities were refuted, so that right guesses may owe to features "
            "alone. It proves nothing."
        )
    if 0 < shown(result) < _SMALL:
        return (
            f"ε is at least {number(shown(result))} ({percent(result.confidence)} confidence): "
            "this audit proves little, and a stronger one may prove more."
        )
    if shown(result) > 0:
        condition = "If the propensities are right, this" if _conditional(result) else "This"
        return (
            f"{condition} model leaks: no {guarantee(result)} guarantee with ε < "
            f"{number(shown(result))} is compatible with this audit "
            f"({percent(result.confidence)} confidence)."
        )
    if reachable(result) > 0:
        return (
            "Nothing could be refuted. A perfect attack would have reached "
            f"ε = {number(reachable(result))} with these {result.m:,} examples, so the audit could "
            "have shown leakage: this attack did not."
        )
    return (
        f"Nothing could be refuted, and nothing could have been: with these {result.m:,} examples "
        f"even a perfect attack proves nothing at {percent(result.confidence)} confidence."
    )


def explanation(result: Result) -> str:
    """Return the sentences below the verdict: the evidence, or what is missing.

    Parameters
    ----------
    result : AuditResult or PanoramiaResult
        The result to put in words.

    Returns
    -------
    str
        One to three sentences.
    """
    if result.kind == "invalid":
        return (
            "Searching all cuts for the most convincing one, and then testing it as if it had been "
            "fixed in advance, reports leakage where there is none. Use a valid cut policy."
        )
    if isinstance(result, PanoramiaResult):
        return _panoramia_evidence(result)
    if isinstance(result, ZeroRunResult):
        return _zero_run_evidence(result)
    if shown(result) > 0:
        return (
            f"{result.correct:,} of {result.guesses:,} guesses about membership were right. Were "
            f"the model {guarantee(result)} for a smaller ε, evidence this strong would have a "
            f"chance of at most {percent(1 - result.confidence)}{_search(result)}."
        )
    if reachable(result) > 0:
        return (
            "This is not evidence of privacy: a stronger attack, better scores or planted canaries "
            "may still reveal leakage."
        )
    return "This is not evidence of privacy: audit more examples."


def contradicted(result: Result) -> tuple[Assumption, ...]:
    """Return the assumptions that the data contradict, those of conditional bounds included.

    Parameters
    ----------
    result : AuditResult or PanoramiaResult
        The result.

    Returns
    -------
    tuple of Assumption
        Often none; each once.
    """
    inner = result.conditionals if isinstance(result, PanoramiaResult) else ()
    found = (one for part in (result, *inner) for one in part.assumptions)
    return tuple(dict.fromkeys(one for one in found if one.status == "contradicted"))


def _conditional(result: Result) -> bool:
    return result.kind == "conditional_lower_bound"


_TAKEN_OUT: dict[Correction, str] = {
    "match": "{kept:,} of {m:,} examples were kept so that membership is a fair coin for each",
    "poisson_binomial": "the odds that features alone give to each of {m:,} examples count against",
    "tamper": "guesses that features make likely were dropped at random, among {m:,} examples",
    "composition": "the worst that features of any of {m:,} examples may tell was taken off",
}


def _zero_run_evidence(result: ZeroRunResult) -> str:
    """Say how shift was taken out, what is left, and what would have been claimed without."""
    how = _TAKEN_OUT[result.correction].format(kept=result.kept, m=result.m)
    naive = (
        f"An audit that takes no account of the features would have claimed ε = "
        f"{number(shown(result.naive))}, which proves nothing here."
    )
    if result.withheld and result.falsification is not None and result.falsification.refuted:
        return (
            f"An independent model predicts membership better than the propensities allow "
            f"(p = {result.falsification.p_value:.2g}): fit a richer one, or to more examples. "
            f"{naive}"
        )
    if result.withheld and (doubts := contradicted(result)):
        return f"{doubts[0].statement} {naive}"
    counted = f"{result.correct:,} of {result.guesses:,} guesses count as right; {how}."
    if result.by_tampering is not None:
        sign = "≤" if result.bounds_above else "≥"
        counted += (
            f" Tampering with guesses in place of matching proves {symbol(result)} {sign} "
            f"{result.rounded(result.by_tampering)}; to pick the larger is not paid for."
        )
    if shown(result) > 0:
        return f"{counted} {naive}"
    return f"{counted} This is not evidence of privacy. {naive}"


HOW: dict[Correction, str] = {
    "match": "after matching",
    "poisson_binomial": "by each example's own odds",
    "tamper": "after tampering",
    "composition": "by composition",
}
"""How each correction comes to its bound, in a few words."""


def why_zero(c_lb: float, ceiling: float, certified: str = "") -> tuple[str, str, str]:
    """Return the three possible reasons of an estimate of 0 (Kazmi et al. 2024, appendix D.5).

    Parameters
    ----------
    c_lb, ceiling : float
        What the baseline proves, and what a perfect attack on these examples would.
    certified : str
        What another audit of the same model proves, in words; empty if nothing.

    Returns
    -------
    tuple of str
        Sentences, with what speaks for or against each.
    """
    room = number(max(0.0, ceiling - c_lb))
    little = "The target model leaks too little for any attack to see."
    if certified:
        little += f" {certified}: then this is not the reason."
    easy = (
        "The generated points are so easy to tell from real ones that the baseline already "
        f"explains what the attack finds. Here it proves c ≥ {number(c_lb)} of the "
        f"{number(ceiling)} that a perfect attack reaches, which leaves ε̃ at most {room}."
    )
    return (
        little,
        easy,
        "The attack is too weak, or has too few examples, to use what the model reveals.",
    )


def conditional_words(result: PanoramiaResult) -> str:
    """Return what Zero-Run says of the same examples, beside the estimate.

    Parameters
    ----------
    result : PanoramiaResult
        With or without features.

    Returns
    -------
    str
        The bounds and what they rest on, or why they are withheld; empty without features.
    """
    found = result.conditionals
    if not found:
        return ""
    doubt = found[0].falsification
    model = str(found[0].options["propensity"])
    if any(one.withheld for one in found):
        refused = [one.falsification for one in found if one.withheld and one.falsification]
        by = next((f" (p = {one.p_value:.2g})" for one in refused if one.refuted), "")
        return (
            f"Zero-Run on the same examples proves nothing: the {model}, was refuted{by}, so the "
            "examples say more of their coins than it knows."
        )
    if not any(one.bound for one in found):
        return (
            "Zero-Run on the same examples proves nothing either: what the examples say of their "
            f"coins by themselves, and chance, explain all right guesses, if the {model}, is right."
        )
    bounds = " and ".join(f"ε ≥ {number(shown(one))} {HOW[one.correction]}" for one in found)
    tried = "" if doubt is None else f" A sceptic did not refute it (p = {doubt.p_value:.2g})."
    return (
        f"Zero-Run on the same examples gives a conditional lower bound: {bounds}. It holds if the "
        f"propensity model is right, a {model}.{tried}"
    )


def claim_sentence(result: Result, *, epsilon: float, c: float | None = None) -> str:
    """Return what the audit says about a claimed guarantee.

    Parameters
    ----------
    result : AuditResult or PanoramiaResult
        The result to check.
    epsilon : float
        The claimed ε, at least 0; for a family of trade-off functions, at `DELTA`.
    c : float, optional
        The claimed closeness of a generator, for PANORAMIA.

    Returns
    -------
    str
        One sentence that starts with the verdict's meaning.
    """
    if isinstance(result, PanoramiaResult):
        verdict = result.check(epsilon=epsilon, c=c)
        claim = f"ε = {epsilon:g}" if c is None else f"c = {c:g} with ε = {epsilon:g}"
    else:
        delta = DELTA if result.is_family else result.claim.delta
        verdict = result.check(epsilon=epsilon, delta=delta)
        claim = f"ε = {epsilon:g}" + (f" with δ = {delta:g}" if delta else "")
    if verdict == "refuted":
        return f"The claimed {claim} is refuted ({percent(result.confidence)} confidence)."
    if verdict == "not refuted":
        return (
            f"The claimed {claim} is not refuted, though this audit could have refuted it "
            f"({percent(result.confidence)} confidence)."
        )
    if result.kind == "invalid":
        return f"The claimed {claim} cannot be tested: this audit is invalid."
    if result.kind == "estimate" and c is None:
        return (
            f"The claimed {claim} cannot be tested alone: an estimate refutes nothing. Claim c and "
            "ε together."
        )
    return (
        f"Inconclusive: the claimed {claim} is out of reach, since with these {result.m:,} "
        "examples even a perfect attack could not refute it."
    )


def joint_confidence(results: Iterable[Result]) -> float:
    """Return the confidence at which all bounds hold together, whatever their dependence.

    Parameters
    ----------
    results : iterable of result
        Their probabilities of error add up; an estimate proves nothing and adds none.

    Returns
    -------
    float
        At least 0.
    """
    return max(0.0, 1 - sum(1 - one.confidence for one in results if _bounds(one)))


def headline_of_many(results: Mapping[str, Result]) -> str:
    """Return the verdict on several models: how many leak, and which one most.

    To name the worst of several is a statement about all of them, so its confidence is the joint
    one: audits at confidence 1 - β/n each let it be 1 - β.

    Parameters
    ----------
    results : mapping of str to result
        At least two results by name.

    Returns
    -------
    str
        One or two sentences.
    """
    proved = {name: result for name, result in results.items() if _proves(result)}
    if not proved:
        return f"Nothing could be refuted on any of the {len(results)} models."
    together = joint_confidence(results.values())
    if together <= 0:
        return (
            f"Nothing is claimed of the {len(results)} models together: each bound has its own "
            "probability of error, and these add up to 1. Audit each at a confidence of "
            f"1 - 0.05/{len(results)}."
        )
    sure = f"({percent(together)} confidence, simultaneously over the {len(results)} models)"
    most = max(proved, key=lambda name: shown(proved[name]))
    leaking = sum(map(leaks, proved.values()))
    if not leaking:
        return (
            f"Little is proved on the {len(results)} models: at most, ε is at least "
            f"{number(shown(proved[most]))} on “{most}” {sure}."
        )
    share = (
        f"All {len(results)} models leak"
        if leaking == len(results)
        else f"{leaking} of {len(results)} models leak"
    )
    return (
        f"{share}. The worst is “{most}”: no {guarantee(proved[most])} guarantee with "
        f"ε < {number(shown(proved[most]))} is compatible with its audit {sure}."
    )


def guarantee(result: Result) -> str:
    """Return the name of the guarantee in words: ε-DP, or (ε, 1e-05)-DP at one δ."""
    if is_family(result):
        return f"{result.claim.name} with (ε, {DELTA:g})-DP"
    return f"(ε, {result.claim.delta:g})-DP" if result.claim.delta else "ε-DP"


def _search(result: Result) -> str:
    fixed = result.options["cuts"]["type"] == "Fixed"
    return "" if fixed else ", the search over the cuts of the ranking included"


def leaks(result: Result) -> bool:
    """Return whether the result proves leakage worth the word: a bound, and not a tiny one."""
    return _proves(result) and shown(result) >= _SMALL


def _bounds(result: Result) -> bool:
    return result.kind.endswith("lower_bound")


def _proves(result: Result) -> bool:
    return _bounds(result) and shown(result) > 0


def verdict(result: Result) -> str:
    """Return the verdict in a word or two, for a table.

    Parameters
    ----------
    result : AuditResult or PanoramiaResult
        The result to put in words.

    Returns
    -------
    str
        "leaks", "at least 0.001" (a tiny bound), "nothing refuted", "estimate" or "invalid".
    """
    if result.kind in {"estimate", "invalid"}:
        return result.kind
    if leaks(result):
        return "leaks"
    return f"at least {number(shown(result))}" if _proves(result) else "nothing refuted"


def figure_of(result: Result) -> str:
    """Return the bound with its sign, and its kind where it proves nothing by itself."""
    if result.kind == "estimate":
        return f"ε̃ = {number(shown(result))}, estimate"
    if result.kind == "invalid":
        return f"ε = {number(shown(result))}, invalid"
    if is_family(result):
        sign = "≤" if result.bounds_above else "≥"
        return f"{symbol(result)} {sign} {result.rounded(result.bound)}"
    return f"ε ≥ {number(shown(result))}"


def symbol(result: Result) -> str:
    """Return the name of what is bounded, as figures and tables write it."""
    parameter = result.claim.parameter
    return {"epsilon": "ε", "mu": "μ"}.get(parameter, parameter.replace("_", " "))


def _estimate(result: Result) -> str:
    if shown(result) > 0:
        return f"Estimated leakage: ε̃ = {number(shown(result))}. This is not a lower bound on ε."
    return (
        "No leakage estimated: the attack with the model proves no more than the baseline proves "
        "without it."
    )


def _panoramia_evidence(result: PanoramiaResult) -> str:
    both = (
        f"c ≥ {number(result.c_lb)} (what the baseline proves without the model) and "
        f"c + ε ≥ {number(result.c_plus_epsilon_lb)} (what the attack proves with it)"
    )
    if result.c_upper is not None:
        source = "real non-members" if result.c_upper == 0 else f"c at most {result.c_upper:g}"
        return f"The audit finds {both}. Given {source}, the bound on ε is certified."
    if shown(result) > 0:
        return (
            f"The audit finds {both}. If c is no larger than {number(result.c_lb)}, this model is "
            f"not ε-DP for any ε below {number(shown(result))}; if c is larger, part or all of the "
            "difference is the generator's doing, not the model's."
        )
    return (
        f"The audit finds {both}. Either the generated points are too easily told from real ones, "
        "or the attack is too weak, or the model leaks little. This is not evidence of privacy."
    )

"""The description of an audit of synthetic data."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from leakbound._base.formatting import number, share
from leakbound.report.description import Description, Figure, Meaning, Metric, Overview
from leakbound.report.figures import RiskBar, plot_risks
from leakbound.results.descriptions import next_steps
from leakbound.results.descriptions.one_run import description_of_audit
from leakbound.results.descriptions.shared import section_of_grounds
from leakbound.results.synthetic import DEPENDS, MEANING, Risk, Risks, SyntheticResult
from leakbound.results.terms import scale_of

_MISSED = (
    "The similarity metrics are neither a bound nor a test. A generator can look good on all of "
    "them and leak, or look bad without leaking."
)
_NO_LIMIT = (
    "That no hit is certified does not make a risk insignificant: a few exposed people may remain "
    "undetected, and a better attack may find more. No attack gives an upper limit; the ε of a "
    "mechanism does."
)
_BOTH = (
    "What general patterns tell about people whether or not their data was used: it raises the "
    "shares of members and of held-out people alike, and is not counted in what is certified."
)
_CAPTION = (
    "Bars: on how many members the attack succeeds. Marks: on how many held-out people, with an "
    "exact upper limit for people of the same population."
)


def describe(result: SyntheticResult) -> Description:
    """Describe an audit of synthetic data: the bound, three questions, and similarity metrics."""
    said = description_of_audit(result)
    meaning = said.meaning
    says = tuple(text.replace("trained this generator", "made this table") for text in meaning.says)
    said = replace(
        said,
        metrics=(*said.metrics, *_metrics_of_synthetic_table(result)),
        meaning=Meaning(says=says, does_not_say=(*meaning.does_not_say, _MISSED)),
        sections=(section_of_grounds(result, "Why it holds", _attacks_in_words(result)),),
        shown=2,
    )
    if result.risks is None:
        return said
    return _with_risks(said, result.risks)


# What is printed is all that a page opens with: of risks there are more paragraphs.
sentences = describe


def _metrics_of_synthetic_table(result: SyntheticResult) -> tuple[Metric, ...]:
    """Return the attack that won, and the usual similarity metrics."""
    similarity = result.similarity
    compared = "of synthetic records, in all columns compared; to a non-member"
    expected = f"of synthetic records; {share(similarity.expected)} if nothing is copied"
    metrics = (
        ("Best attack", result.attack.replace("_", " "), ""),
        (
            "Equal to a member",
            share(similarity.copies_of_members),
            f"{compared}: {share(similarity.copies_of_nonmembers)}",
        ),
        ("Closest record is a member", share(similarity.closer_to_members), expected),
        (
            "Distance to members",
            f"{similarity.distance_to_members:.3f}",
            f"median (DCR), to non-members {similarity.distance_to_nonmembers:.3f}; median ratio "
            f"(NNDR) {similarity.ratio_to_members:.3f} and {similarity.ratio_to_nonmembers:.3f}",
        ),
        (
            "Similarity",
            f"{similarity.marginals:.3f}",
            f"of marginals; of correlations {similarity.correlations:.3f}; 1 is equal",
        ),
    )
    return tuple(Metric(*one) for one in metrics)


def _attacks_in_words(result: SyntheticResult) -> str:
    """Return the bounds of all attacks."""
    attacks = result.options["attacks"]
    rounded = scale_of(result.claim).rounded
    listed = ", ".join(
        f"{name.replace('_', ' ')} {rounded(float(bound))}" for name, bound in attacks.items()
    )
    share_of_each = ""
    if len(attacks) > 1:
        share_of_each = ", each at an equal share of the error probability"
    return f"Bounds of the attacks{share_of_each}: {listed}."


def _with_risks(description: Description, risks: Risks) -> Description:
    """Add the three questions: a paragraph, a table with a figure, numbers, and what next."""
    meaning = description.meaning
    numbers = {
        f"{name}_{field}": float(value)
        for name, risk in risks
        for field in ("rate", "control_rate", "certified")
        if (value := getattr(risk, field)) is not None
    }
    return replace(
        description,
        paragraphs=(*description.paragraphs, *_paragraphs_about_risks(risks)),
        overview=_overview_of_risks(risks),
        meaning=replace(meaning, does_not_say=(*meaning.does_not_say, _NO_LIMIT, _BOTH)),
        numbers=description.numbers | numbers,
        next_steps=next_steps.most_urgent_steps(
            (*_next_steps_about_risks(risks), *description.next_steps)
        ),
    )


def _risk_in_words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _paragraphs_about_risks(risks: Risks) -> Iterator[str]:
    """Yield a sentence for each risk; the first with a count says what the count means."""
    defined = False
    for name, risk in risks:
        others = f"{share(risk.control_rate)} of held-out people"
        if risk.control_rate_upper is not None:
            others += f" (at most {share(risk.control_rate_upper, up=True)})"
        rates = (
            f"{_risk_in_words(name)}: the attack succeeds on {share(risk.rate)} of members and "
            f"{others}"
        )
        if risk.certified is None:
            yield f"{rates}. What is proved is withheld with the bound."
            continue
        exposed = f"{risk.surely_seen_from:,} or more people are exposed"
        sure = f"Even a perfect attack is sure to certify a hit only if {exposed}."
        if not risk.certified:
            yield f"{rates}. None of these hits is certified. {sure}"
            continue
        proved = f"At least {risk.certified:,} of these hits {DEPENDS}"
        if not defined:
            proved += f": {MEANING}"
        defined = True
        yield f"{rates}. {proved}. {sure}"


def _overview_of_risks(risks: Risks) -> Overview:
    """Return the section of the report: a table, what it means, and a bar for each risk."""
    heads = ("risk", "", "members", "held out", "held out, at most", "certified", "of pairs", "ε ≥")
    table = [heads, *(_row_of_risk(name, risk) for name, risk in risks)]
    bars = [
        RiskBar(
            name=_risk_in_words(name),
            members=risk.rate,
            others=risk.control_rate,
            limit=risk.control_rate_upper,
            proved=_proof_of_risk_in_words(risk),
        )
        for name, risk in risks
    ]
    figure = Figure(
        name="risks", title="Three questions", draw=partial(plot_risks, bars), caption=_CAPTION
    )
    least = max(risk.surely_seen_from for _, risk in risks)
    note = (
        f"Certified: at least this many of these hits {DEPENDS}: {MEANING}. A perfect attack is "
        f"sure to certify one only if {least:,} people or more are exposed. The shares of members "
        "and of held-out people are not a test by themselves."
    )
    return Overview(title="Three questions", table=table, note=note, figure=figure)


def _proof_of_risk_in_words(risk: Risk) -> str:
    if risk.certified is None:
        return "withheld"
    if not risk.certified:
        return "none certified"
    return f"at least {risk.certified:,} certified"


def _row_of_risk(name: str, risk: Risk) -> tuple[str, ...]:
    """Return the cells of a risk; what does not exist is called none."""
    limit = "none"
    if risk.control_rate_upper is not None:
        limit = share(risk.control_rate_upper, up=True)
    certified = "withheld"
    if risk.certified is not None:
        certified = f"{risk.certified:,}"
    bound = "none"
    if risk.epsilon is not None:
        bound = number(risk.epsilon)
    return (
        _risk_in_words(name),
        _QUESTIONS[name],
        share(risk.rate),
        share(risk.control_rate),
        limit,
        certified,
        f"{risk.pairs:,}",
        bound,
    )


_QUESTIONS = {
    "singling_out": "can a person be isolated?",
    "linkability": "can two halves of a record be joined?",
    "inference": "can a value be deduced from the rest?",
}


def _next_steps_about_risks(risks: Risks) -> Iterator[str]:
    """Yield what to do about risks of which hits are certified."""
    found = {name for name, risk in risks if risk.certified}
    if "linkability" in found:
        yield "Look for copied rows: the generator repeats members' records almost unchanged."
    elif "inference" in found and risks.linkability is not None:
        yield (
            "A column seems to be memorised, as hits of inference are certified and none of "
            "linkability: audit a new table with this column named as a secret."
        )
    if "singling_out" in found:
        yield (
            "Drop or coarsen columns with values that only one person has, and remove duplicates "
            "before the split."
        )

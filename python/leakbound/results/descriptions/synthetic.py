"""The description of an audit of synthetic data."""

from dataclasses import replace

from leakbound._base.formatting import share
from leakbound.report.description import Description, Meaning, Metric
from leakbound.results.descriptions.audit import of_audit
from leakbound.results.descriptions.standard import grounds
from leakbound.results.synthetic import SyntheticResult
from leakbound.results.words import scale_of

_MISSED = (
    "The similarity metrics are neither a bound nor a test. A generator can look good on all of "
    "them and leak, or look bad without leaking."
)


def describe(result: SyntheticResult) -> Description:
    """Describe an audit of synthetic data: the bound, and the usual similarity metrics."""
    said = of_audit(result)
    similarity = result.similarity
    compared = "of synthetic records, in all columns compared; to a non-member"
    expected = f"of synthetic records; {share(similarity.expected)} if nothing is copied"
    metrics = (
        ("Attack", result.attack.replace("_", " "), "gave the bound"),
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
    attacks = result.options["attacks"]
    rounded = scale_of(result.claim).rounded
    listed = ", ".join(
        f"{name.replace('_', ' ')} {rounded(float(bound))}" for name, bound in attacks.items()
    )
    several = ""
    if len(attacks) > 1:
        several = ", each at an equal share of the error probability"
    meaning = said.meaning
    says = tuple(text.replace("trained this generator", "made this table") for text in meaning.says)
    why = grounds(result, "Why it holds", f"Bounds of the attacks{several}: {listed}.")
    return replace(
        said,
        metrics=(*said.metrics, *(Metric(*one) for one in metrics)),
        meaning=Meaning(says=says, does_not_say=(*meaning.does_not_say, _MISSED)),
        sections=(why,),
        shown=2,
    )

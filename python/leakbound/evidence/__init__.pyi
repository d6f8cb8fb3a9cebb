from leakbound.evidence.bundle import model_index as model_index
from leakbound.evidence.bundle import write_bundle as write_bundle
from leakbound.evidence.challenge import judge_challenge as judge_challenge
from leakbound.evidence.challenge import new_challenge as new_challenge
from leakbound.evidence.challenge import opened_challenge as opened_challenge
from leakbound.evidence.verification import verify_bundle as verify_bundle
from leakbound.results.base import Check as Check
from leakbound.results.base import Verification as Verification

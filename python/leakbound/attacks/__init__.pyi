from leakbound._base.scores import Scores as Scores
from leakbound.attacks.learnt import LearntScore as LearntScore
from leakbound.attacks.learnt import learnt_score as learnt_score
from leakbound.attacks.models import score as score
from leakbound.attacks.scores import margin_threshold as margin_threshold
from leakbound.attacks.scores import offline_lira as offline_lira
from leakbound.attacks.scores import rmia as rmia

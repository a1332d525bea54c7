"""Budget: the settings that all methods of a comparison share, such as rounds and nodes per round."""

from dataclasses import dataclass, field

from bangs.calibration.calibrators import ETS, Calibrator
from bangs.graphs.pagerank import PPR, Propagator
from bangs.selftraining.defaults import POOL, ROUNDS, Pool, TeacherChoice
from bangs.valuation.banzhaf import DEFAULT, ESTIMATORS, Estimator
from bangs.valuation.influence import Normalisation


@dataclass(frozen=True)
class Budget:
    """The settings that all methods of a comparison share, such as rounds and nodes per round."""

    k: int = 100
    candidates: int = 200
    rounds: int = ROUNDS
    teacher: TeacherChoice | None = None  # None = the default of the method
    calibrate: Calibrator = field(default_factory=ETS)
    estimate: Estimator = field(default_factory=lambda: ESTIMATORS[DEFAULT](None))
    pool: Pool = POOL
    normalise: Normalisation = "none"  # of the estimated logits in the information game
    propagate: Propagator = field(default_factory=PPR)  # which nodes a candidate influences in that game

"""The public names of estimators: the one line to add for a new one."""

from tlstd.estimators.atd import ATD as ATD
from tlstd.estimators.base import Estimator as Estimator
from tlstd.estimators.emphatic_td import EmphaticTD as EmphaticTD
from tlstd.estimators.forgetful_lstd import ForgetfulLSTD as ForgetfulLSTD
from tlstd.estimators.gradient_td import GTD2 as GTD2
from tlstd.estimators.gradient_td import TDC as TDC
from tlstd.estimators.gradient_td import TDRC as TDRC
from tlstd.estimators.handover import Handover as Handover
from tlstd.estimators.ilstd import ILSTD as ILSTD
from tlstd.estimators.krylov_lstd import KrylovLSTD as KrylovLSTD
from tlstd.estimators.lars_td import LARSTD as LARSTD
from tlstd.estimators.linear_dyna import LinearDyna as LinearDyna
from tlstd.estimators.lstd import LSTD as LSTD
from tlstd.estimators.lstd_sa import LSTDSA as LSTDSA
from tlstd.estimators.projected_lstd import ProjectedLSTD as ProjectedLSTD
from tlstd.estimators.replay import Replay as Replay
from tlstd.estimators.sketched_lstd import SketchedLSTD as SketchedLSTD
from tlstd.estimators.step_sizes import Decay as Decay
from tlstd.estimators.swift_td import SwiftTD as SwiftTD
from tlstd.estimators.td import TD as TD
from tlstd.estimators.tlstd import TLSTD as TLSTD
from tlstd.estimators.true_online_td import TrueOnlineTD as TrueOnlineTD

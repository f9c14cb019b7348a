"""The public names of estimators: the one line to add for a new one."""

from tlstd.classic.lstd import LSTD as LSTD
from tlstd.classic.td import TD as TD
from tlstd.classic.true_online_td import TrueOnlineTD as TrueOnlineTD
from tlstd.estimators.base import Estimator as Estimator
from tlstd.estimators.step_sizes import Decay as Decay
from tlstd.krylov.krylov_lstd import KrylovLSTD as KrylovLSTD
from tlstd.truncated.tlstd import TLSTD as TLSTD
from tlstd.zoo.atd import ATD as ATD
from tlstd.zoo.emphatic_td import EmphaticTD as EmphaticTD
from tlstd.zoo.forgetful_lstd import ForgetfulLSTD as ForgetfulLSTD
from tlstd.zoo.gradient_td import GTD2 as GTD2
from tlstd.zoo.gradient_td import TDC as TDC
from tlstd.zoo.gradient_td import TDRC as TDRC
from tlstd.zoo.handover import Handover as Handover
from tlstd.zoo.ilstd import ILSTD as ILSTD
from tlstd.zoo.lars_td import LARSTD as LARSTD
from tlstd.zoo.linear_dyna import LinearDyna as LinearDyna
from tlstd.zoo.lstd_sa import LSTDSA as LSTDSA
from tlstd.zoo.projected_lstd import ProjectedLSTD as ProjectedLSTD
from tlstd.zoo.replay import Replay as Replay
from tlstd.zoo.sketched_lstd import SketchedLSTD as SketchedLSTD
from tlstd.zoo.swift_td import SwiftTD as SwiftTD

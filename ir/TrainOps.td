// SPDX-License-Identifier: Apache-2.0
// All ops of the train dialect, by family, and the plan, for the generators.
include "ir/ForwardOps.td"
include "ir/LossOps.td"
include "ir/ProductOps.td"
include "ir/ElementwiseOps.td"
include "ir/ActivationOps.td"
include "ir/GradientOps.td"
include "ir/NormOps.td"
include "ir/RecurrenceOps.td"
include "ir/UpdateOps.td"
include "ir/CollectiveOps.td"
include "ir/MemoryOps.td"
include "ir/PlanAttrs.td"

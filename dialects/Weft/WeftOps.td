//===- WeftOps.td - All ops of the dialect ---------------------------------===//
include "dialects/Weft/ModelOps.td"
include "dialects/Weft/ComputeOps.td"
include "dialects/Weft/ScheduleOps.td"

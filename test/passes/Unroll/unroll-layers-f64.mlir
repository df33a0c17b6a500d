// RUN: weft-opt %s --weft-unroll-layers="batch=1 positions=2 f64" | FileCheck %s

// Checks run the same model in float64. Mutation caught: integers widened too.
// CHECK: weft.state parameter @table <normal, 1.000000e+00 : f64> : tensor<5x3xf64, #weft.axes<vocab, dim>>
// CHECK: @forward(%{{.*}}: tensor<1x2xi32, #weft.axes<batch, pos>> {{.*}} -> (tensor<1x2x3xf64, #weft.axes<batch, pos, dim>>
weft.model @m {vocab = "5", dim = "3"} {
  %tokens = weft.input "tokens" : tensor<?x?xi32, #weft.axes<batch, pos>>
  %table = weft.param "table" <normal, 1.0 : f64> : tensor<?x?xf32, #weft.axes<vocab, dim>>
  %x = weft.gather %table, %tokens
    : (tensor<?x?xf32, #weft.axes<vocab, dim>>, tensor<?x?xi32, #weft.axes<batch, pos>>) -> tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
  weft.output "x" %x : tensor<?x?x?xf32, #weft.axes<batch, pos, dim>>
}

//===- ComputeOps.td - What a model computes -------------------------------===//
#ifndef WEFT_COMPUTE_OPS_TD
#define WEFT_COMPUTE_OPS_TD

include "dialects/Weft/WeftDialect.td"

/// An op whose cost (Costs.cpp) is not that of an elementwise one.
defvar kOwnCost = "::weft::Cost getCost();";

class Weft_Inferred<string mnemonic, list<Trait> traits = []>
    : Weft_PureOp<mnemonic, !listconcat([InferTypeOpAdaptor], traits)>;
class Weft_Diff<string mnemonic, list<Trait> traits = []>
    : Weft_Inferred<mnemonic, !listconcat([DeclareOpInterfaceMethods<DifferentiableOpInterface>], traits)>;

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

def Weft_ConstantOp : Weft_PureOp<"constant"> {
  let summary = "one number in every element";
  let description = [{ `value` is a formula while the model is rolled. }];
  let arguments = (ins Weft_Number:$value);
  let results = (outs Weft_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Weft_IntegersOp : Weft_PureOp<"integers"> {
  let summary = "a constant vector of integers: one window a head";
  let description = [{ Constraints: the result is a vector of as many integers (C1). }];
  let arguments = (ins DenseI32ArrayAttr:$values);
  let results = (outs Weft_Int:$result);
  let assemblyFormat = "$values attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Weft_UnaryOp : Weft_Diff<"unary"> {
  let summary = "y = f(x), element by element";
  let description = [{
    `gelu` is the one with erf, `gelu_tanh` the approximation
    0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); silu = x sigmoid(x);
    relu has gradient 0 at 0.
  }];
  let arguments = (ins Weft_UnaryFn:$fn, Weft_Float:$x);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$fn $x attr-dict `:` functional-type(operands, results)";
}

def Weft_UnaryGradOp : Weft_Inferred<"unary_grad"> {
  let summary = "dx = dy f'(x)";
  let description = [{ Constraints: `dy` has the type of `x` (C1). }];
  let arguments = (ins Weft_UnaryFn:$fn, Weft_Float:$x, Weft_Float:$dy);
  let results = (outs Weft_Float:$dx);
  let assemblyFormat = "$fn $x `,` $dy attr-dict `:` functional-type(operands, results)";
}

def Weft_BinaryOp : Weft_Diff<"binary"> {
  let summary = "z = x op y; axes line up by name, what one side lacks is repeated";
  let description = [{
    Constraints: one side holds all axes of the other (C1), with equal sizes
    (C2), and its type is the result's (C3); both have one element type (C4).
  }];
  let arguments = (ins Weft_BinaryFn:$fn, Weft_Float:$x, Weft_Float:$y);
  let results = (outs Weft_Float:$z);
  let assemblyFormat = "$fn $x `,` $y attr-dict `:` functional-type(operands, results)";
}

def Weft_SumToOp : Weft_PureOp<"sum_to", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "sums over every axis that the result lacks";
  let description = [{
    With `init`, its value is added. Constraints: the result's axes are axes of
    `x` (C1), with equal sizes (C2); `init` has the type of the result (C3).
  }];
  let arguments = (ins Weft_Float:$x, Optional<Weft_Float>:$init);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$x (`init` $init^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_PartialSumOp : Weft_PureOp<"partial_sum"> {
  let summary = "sum_to, one part for each chunk of rows";
  let description = [{
    The axes `rows` (outermost of `x`, in order) are counted as one index of R
    values; chunk c sums rows [c R / chunks, (c + 1) R / chunks). The result has
    the axis `chunk` first and then those kept. Constraints: `x` starts with
    `rows` (C1), which the result lacks (C2); the result's first axis is `chunk`
    (C3) and the others are axes of `x` (C4).
  }];
  let arguments = (ins Weft_Float:$x, StrArrayAttr:$rows);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$x `over` $rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_DropoutOp : Weft_Diff<"dropout"> {
  let summary = "zeroes each element with probability `rate`, scales the others by 1 / (1 - rate)";
  let description = [{
    Element i is kept when the Philox number of (`noise`, `stream`, i) is at
    least `rate`: the mask is the same on every device and needs no memory.
    Without `noise` (evaluation) it is the identity. Constraints: `noise` is one
    integer (C1).
  }];
  let arguments = (ins Weft_Float:$x, Optional<Weft_Int>:$noise, Weft_Number:$rate, StrAttr:$stream);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$x (`noise` $noise^)? $stream attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Rows: functions of the last axis
//===----------------------------------------------------------------------===//

class Weft_RowOp<string mnemonic, string formula> : Weft_Diff<mnemonic> {
  let summary = formula;
  let description = [{ Constraints: `x` has at least one axis (C1). `eps` is in units of x^2. }];
  let arguments = (ins Weft_Float:$x, Weft_Number:$eps);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}
class Weft_RowGradOp<string mnemonic, string formula> : Weft_Inferred<mnemonic> {
  let summary = formula;
  let description = [{ Statistics are computed again from `x`. Constraints: `dy` has the type of `x` (C1). }];
  let arguments = (ins Weft_Float:$x, Weft_Float:$dy, Weft_Number:$eps);
  let results = (outs Weft_Float:$dx);
  let assemblyFormat = "$x `,` $dy attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

def Weft_LayerNormOp : Weft_RowOp<"layer_norm", "y = (x - mean) / sqrt(var + eps), over the last axis">;
def Weft_LayerNormGradOp : Weft_RowGradOp<"layer_norm_grad",
    "dx = r (dy - mean(dy) - y mean(dy y)), r = 1 / sqrt(var + eps)">;
def Weft_RmsNormOp : Weft_RowOp<"rms_norm", "y = x / sqrt(mean(x^2) + eps), over the last axis">;
def Weft_RmsNormGradOp : Weft_RowGradOp<"rms_norm_grad",
    "dx = r (dy - y mean(dy y)), r = 1 / sqrt(mean(x^2) + eps)">;

def Weft_SoftmaxOp : Weft_Diff<"softmax"> {
  let summary = "y = exp(x - max) / sum exp(x - max), over the last axis";
  let description = [{ Constraints: `x` has at least one axis (C1). }];
  let arguments = (ins Weft_Float:$x);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}
def Weft_SoftmaxGradOp : Weft_Inferred<"softmax_grad"> {
  let summary = "dx = y (dy - sum(dy y))";
  let description = [{ Constraints: `dy` has the type of `y` (C1). }];
  let arguments = (ins Weft_Float:$y, Weft_Float:$dy);
  let results = (outs Weft_Float:$dx);
  let assemblyFormat = "$y `,` $dy attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

def Weft_RopeOp : Weft_Diff<"rope"> {
  let summary = "rotates pairs (x[i], x[i + half]) of the last axis by position * base^(-i / half)";
  let description = [{
    (y[i], y[i + half]) = (x[i] cos - x[i + half] sin, x[i] sin + x[i + half] cos);
    with `inverse` the angle is negated, which is the gradient. `table`
    (tensor<L x half x 2>: cos, sin) is what compiled kernels read; it changes
    no value. Source: arXiv:2104.09864, halves paired.

    Constraints: the last axis is even (C1); `position` is int over axes of `x`
    (C2); `table` is [positions, half, 2] (C3).
  }];
  let arguments = (ins Weft_Float:$x, Weft_Int:$position, Optional<Weft_Float>:$table,
                   Weft_Number:$base, UnitAttr:$inverse);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$x `,` $position (`table` $table^)? (`inverse` $inverse^)? attr-dict "
                       "`:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Products and look-ups
//===----------------------------------------------------------------------===//

def Weft_ContractOp : Weft_PureOp<"contract", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "sums over the axes that both sides have and the result lacks";
  let description = [{
    result[r] = init[r] + sum_s a[...] b[...]. Axes of the result that both
    sides have line up and are not summed. Constraints: each axis of the result is an axis of `a` or `b`
    (C1); each other axis is in both (C2); sizes of one name are equal (C3);
    `init` has the type of the result (C4).
  }];
  let arguments = (ins Weft_Float:$a, Weft_Float:$b, Optional<Weft_Float>:$init);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$a `,` $b (`init` $init^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_GatherOp : Weft_Diff<"gather"> {
  let summary = "rows of a table: y[i..., c...] = table[index[i...], c...]";
  let description = [{
    An index outside the table gives a row of zeros in kernels and an error in
    the interpreter. Constraints: `table` has an axis to look up (C1); its other
    axes are none of the index's (C2).
  }];
  let arguments = (ins Weft_Float:$table, Weft_Int:$index);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$table `,` $index attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

def Weft_GatherGradOp : Weft_PureOp<"gather_grad"> {
  let summary = "dtable[r, c...] = init + sum of dy over the places where index is r, in order of place";
  let description = [{
    Constraints: `dy` has the axes of the index and then those of the table but
    for its first (C1); `init` has the type of the result (C2).
  }];
  let arguments = (ins Weft_Int:$index, Weft_Float:$dy, Optional<Weft_Float>:$init);
  let results = (outs Weft_Float:$dtable);
  let assemblyFormat = "$index `,` $dy (`init` $init^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_ReshapeOp : Weft_PureOp<"reshape", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the same elements in row-major order under other axes; no data moves";
  let description = [{
    It renames axes, merges neighbours or splits one. Constraints: the result has
    as many elements as `x` (C1) and their type (C2).
  }];
  let arguments = (ins Weft_Float:$x);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_ConvertOp : Weft_PureOp<"convert"> {
  let summary = "the same values in another element type, rounded to the nearest, ties to even";
  let description = [{
    Stands where a kernel reads or writes what is stored in fewer bits than it
    computes in. Constraints: `y` has the sizes and axes of `x` (C1).
  }];
  let arguments = (ins Weft_Float:$x);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_TakeOp : Weft_Diff<"take"> {
  let summary = "slices of a tensor: some places of one axis, or of several that stand side by side";
  let description = [{
    y[o..., n, i...] = x[o..., indices[n], i...], where the axes `axes` of `x` are
    counted together, row-major, and the result has the axis `axis` in their
    place. A vector without axis names has `axes` [] and `axis` "". Constraints:
    `axes` stand side by side in `x`, in this order (C1); each index is a place of
    them (C2); there is one at least (C3); no other axis of `x` is called `axis`
    (C4).
  }];
  let arguments = (ins Weft_Tensor:$x, StrArrayAttr:$axes, StrAttr:$axis, DenseI64ArrayAttr:$indices);
  let results = (outs Weft_Tensor:$y);
  let assemblyFormat = "$x $axes `as` $axis `at` $indices attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

def Weft_PutOp : Weft_PureOp<"put", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "the transpose of take: adds slices to zeros, in order of place";
  let description = [{
    result[o..., indices[n], i...] = sum of y[o..., n, i...] over each n with that
    index; 0 where there is none. Constraints: a take of the result, with the same
    attributes, has the type of `y` (C1).
  }];
  let arguments = (ins Weft_Float:$y, StrArrayAttr:$axes, StrAttr:$axis, DenseI64ArrayAttr:$indices);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$y `from` $axis `to` $axes `at` $indices attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_PositionOp : Weft_Inferred<"position"> {
  let summary = "index inside the document: offset + i - doc_start[i]";
  let description = [{ Constraints: `offset` is one integer (C1). }];
  let arguments = (ins Weft_Int:$doc_start, Optional<Weft_Int>:$offset);
  let results = (outs Weft_Int:$result);
  let assemblyFormat = "$doc_start (`offset` $offset^)? attr-dict `:` functional-type(operands, results)";
}

def Weft_DocumentOp : Weft_Inferred<"document"> {
  let summary = "number of the document in its row, from 0: how often doc_start changed before";
  let arguments = (ins Weft_Int:$doc_start);
  let results = (outs Weft_Int:$result);
  let assemblyFormat = "$doc_start attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Weft_AttendOp : Weft_Inferred<"attend", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "causal attention inside one document, with a window per head";
  let description = [{
    Query i of head h (at place g = offset + i) sees keys j with
    max(doc_start[i], g - windows[h] + 1) <= j <= g:

    ```
    s[j]   = scale * sum_c q[i, h, c] k[j, kv(h), c]
    lse    = log sum_j exp(s[j])
    out[i] = sum_j exp(s[j] - lse) v[j, kv(h)]
    ```

    q: [batch, pos, heads..., channel]; k, v: [batch, keys, kv..., channel],
    where `keys` is `pos` or the axis of a cache. Heads are counted row-major
    over q's axes between pos and channel. k and v are shared along the head
    axes that they lack, by name: kv(h) is the row-major number of the axes
    they have; with the operand `kv_of` (int32, one a head) it is kv_of[h],
    whatever the names are. While the model is rolled the window is the formula
    `window`; then it is the operand `windows` (int32, one a head, at least 1).
    `order` is the order in which heads are worked on and changes no value.
    With `entropies` there is a third result of lse's type, of each row's
    probabilities, in nats: entropy = lse - sum_j exp(s[j] - lse) s[j].

    Constraints: q has `batch`, `pos` first and one axis last (C1); k has axes
    of q but for `keys` (C2); v as k but for its channel (C3); there is `windows`
    with one value a head, or the formula `window` (C4); doc_start is int over q's
    first two axes (C5); `offset` is one integer (C6); with `kv_of`, one value a
    head, C2 holds for the batch alone (C7); `order` names each head once (C8).
  }];
  let arguments = (ins Weft_Float:$q, Weft_Float:$k, Weft_Float:$v, Optional<Weft_Int>:$windows,
                   Optional<Weft_Int>:$doc_start, Optional<Weft_Int>:$offset, Optional<Weft_Int>:$kv_of,
                   Weft_Number:$scale, OptionalAttr<Weft_FormulaAttr>:$window,
                   OptionalAttr<DenseI32ArrayAttr>:$order, UnitAttr:$entropies);
  let results = (outs Weft_Float:$out, Weft_Float:$lse, Optional<Weft_Float>:$entropy);
  let assemblyFormat = "$q `,` $k `,` $v (`windows` $windows^)? (`documents` $doc_start^)? (`offset` $offset^)? "
                       "(`kv_of` $kv_of^)? (`window` $window^)? (`order` $order^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_AttendGradQueryOp : Weft_PureOp<"attend_grad_query"> {
  let summary = "first pass of the backward of attend: dq, and delta = rowsum(dout out)";
  let description = [{
    p[j] = exp(s[j] - lse); ds[j] = p[j] (sum_c dout[c] v[j, c] - delta);
    dq = scale * sum_j ds[j] k[j]. Constraints: `dout` has the type of `out` (C1);
    `dq` has the type of `q` (C2); `delta` has the type of `lse`, q without its
    channel (C3); `windows` has one value a head (C4), and so has `kv_of` (C5);
    `order` names each head once (C6).
  }];
  let arguments = (ins Weft_Float:$q, Weft_Float:$k, Weft_Float:$v, Weft_Int:$windows, Weft_Int:$doc_start,
                   Weft_Float:$out, Weft_Float:$lse, Weft_Float:$dout, Optional<Weft_Int>:$kv_of,
                   Weft_Number:$scale, OptionalAttr<DenseI32ArrayAttr>:$order);
  let results = (outs Weft_Float:$dq, Weft_Float:$delta);
  let assemblyFormat = "$q `,` $k `,` $v `windows` $windows `documents` $doc_start `,` $out `,` $lse `,` $dout "
                       "(`kv_of` $kv_of^)? (`order` $order^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_AttendGradKeyValueOp : Weft_PureOp<"attend_grad_key_value"> {
  let summary = "second pass of the backward of attend: dk = scale sum ds q, dv = sum p dout, over the group";
  let description = [{
    p and ds as in the first pass, which gives `delta`. Constraints: `dk` has the
    type of `k` (C1); `dv` has the type of `v` (C2); `delta` has the type of `lse`,
    q without its channel (C3); `windows` has one value a head (C4), and so has
    `kv_of` (C5); `order` names each key-value head once (C6).
  }];
  let arguments = (ins Weft_Float:$q, Weft_Float:$k, Weft_Float:$v, Weft_Int:$windows, Weft_Int:$doc_start,
                   Weft_Float:$lse, Weft_Float:$delta, Weft_Float:$dout, Optional<Weft_Int>:$kv_of,
                   Weft_Number:$scale, OptionalAttr<DenseI32ArrayAttr>:$order);
  let results = (outs Weft_Float:$dk, Weft_Float:$dv);
  let assemblyFormat = "$q `,` $k `,` $v `windows` $windows `documents` $doc_start `,` $lse `,` $delta `,` $dout "
                       "(`kv_of` $kv_of^)? (`order` $order^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_HeadStatisticsOp : Weft_PureOp<"head_statistics", [AttrSizedOperandSegments]> {
  let summary = "what a window controller is told about each head: sums over the rows of a batch";
  let description = [{
    result[h] holds 12 sums over the rows (b, i) that count, with k and v of the
    head kv(h) at the row's own place:

    ```
    0..2   sum_c |q|, q, q^2          3..5   sum_c |k|, k, k^2
    6..8   sum_c |v|, v, v^2          9      entropy / log n
    10     sum_c out^2                11     1
    ```

    out and entropy are attend's, n is the number of keys that the row sees;
    number 9 is 0 where n is 1. With `targets` (int32, -1: not counted) a row counts when a
    counted target stands at or after its doc_start: slots behind the data form
    a document of their own and are left out. Sums are of floats in a fixed
    order, whatever the number of workers. Source: arXiv:2608.19203, section 5.3.

    Constraints: `out` has q's axes but for its channel, v's (C1); `entropy` is q
    without its channel (C2); `windows` has one value a head (C3), and so has
    `kv_of` (C4); the result is [heads, 12] (C5).
  }];
  let arguments = (ins Weft_Float:$q, Weft_Float:$k, Weft_Float:$v, Weft_Float:$out, Weft_Float:$entropy,
                   Weft_Int:$windows, Weft_Int:$doc_start, Optional<Weft_Int>:$kv_of,
                   Optional<Weft_Int>:$targets);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$q `,` $k `,` $v `,` $out `,` $entropy `windows` $windows `documents` $doc_start "
                       "(`kv_of` $kv_of^)? (`targets` $targets^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_PatternStatisticsOp : Weft_PureOp<"pattern_statistics"> {
  let summary = "what calibration measures of each head: moments of its mean attention, distances to a pattern";
  let description = [{
    Document x begins at place documents[x] of q's rows laid end to end (row b, place i:
    b * pos + i); reach[i] is the number of documents that have a row i, and they are
    the first: `documents` starts with the longest. Row i of a document sees the keys
    max(0, i - windows[h] + 1) <= j <= i, all counted from its start. With

    ```
    A_x[i, j] = exp(scale * sum_c q[x + i, h, c] k[x + j, kv(h), c] - lse[x + i, h])
    M[i, j]   = 1 / reach[i] sum_x A_x[i, j]
    P[i, j]   = exp(a[h, j] + r[h, i - j] - z[h, i])
    ```

    columns[h, j] is the sum over x and i of A_x[i, j], diagonals[h, d] of A_x[i, i - d],
    and sums[h] holds eight sums over x, i and j:

    ```
    0  M log M                    4  (A - P)^2
    1  (A - M)^2                  5  A (log A - max(log P, log 1e-30))
    2  -A log A                   6  sqrt(A P)
    3  -A log A / log n           7  |A - P| / 2
    ```

    n is the number of keys that the row sees; number 3 is 0 where n is 1. Number 1
    is taken about a mean that moves from document to document, so it is never
    negative. Sums are of floats in a fixed order, whatever the number of workers.
    Sources: arXiv:2609.34650, appendix B.1, table 4; Welford, Technometrics 4, 1962.

    Constraints: q has `batch` and `pos` first and one axis last, and k has q's batch
    and pos (C1); `lse` is q without its channel (C2); `windows` has one value a head,
    and so has `kv_of` (C3); `reach` has one value a place, and `documents` at most one
    a place of q's rows (C4); a, r, z and both moments are [heads, pos] (C5); `sums` is
    [heads, 8] (C6).
  }];
  let arguments = (ins Weft_Float:$q, Weft_Float:$k, Weft_Float:$lse, Weft_Int:$windows, Weft_Int:$documents,
                   Weft_Int:$reach, Weft_Float:$a, Weft_Float:$r, Weft_Float:$z, Optional<Weft_Int>:$kv_of,
                   Weft_Number:$scale);
  let results = (outs Weft_Float:$columns, Weft_Float:$diagonals, Weft_Float:$sums);
  let assemblyFormat = "$q `,` $k `,` $lse `windows` $windows `documents` $documents `reach` $reach "
                       "`pattern` $a `,` $r `,` $z (`kv_of` $kv_of^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_MixOp : Weft_Inferred<"mix", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "attention of frozen heads: a fixed pattern in place of scores and softmax";
  let description = [{
    Query i of head h, at place g = offset + i, with s = doc_start[i], mixes the
    values at s <= j <= g with g - j < windows[h] or j - s < first[h]:

    ```
    P[j]   = exp(a[h, j - s] + r[h, g - j] - lse),  lse = log sum_j exp(a[h, j - s] + r[h, g - j])
    out[i] = sum_j P[j] v[j, kv(h)]
    ```

    first[h] is windows[heads + h] where `windows` has two numbers a head, else 0:
    places of a document's beginning that stay in sight. v: [batch, keys, kv...,
    channel]; a and r: [heads, T], of the key's place in its document and of the
    distance. Each head has the value head of its number,
    or kv_of[h]. Source: arXiv:2609.34650, section 3.2 (compact patterns).

    Constraints: v has `batch`, keys, heads and a channel (C1); a and r have one
    type of two axes (C2), and as many places as v has keys (C3); there are as
    many windows as heads, or twice as many numbers, the second half multiples of
    64 (C4); doc_start is int over `batch` and `pos` (C5); v has as many heads as
    a, or there is one `kv_of` a head (C6); with `offset`, one integer, there is
    one query a row (C7).
  }];
  let arguments = (ins Weft_Float:$v, Weft_Float:$a, Weft_Float:$r, Weft_Int:$windows, Weft_Int:$doc_start,
                   Optional<Weft_Int>:$offset, Optional<Weft_Int>:$kv_of);
  let results = (outs Weft_Float:$out, Weft_Float:$lse);
  let assemblyFormat = "$v `,` $a `,` $r `windows` $windows `documents` $doc_start (`offset` $offset^)? "
                       "(`kv_of` $kv_of^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_MixGradValueOp : Weft_PureOp<"mix_grad_value"> {
  let summary = "dv[j] = sum over queries i, and heads of the value head, of P[i, j] dout[i]";
  let description = [{
    P as in mix, which gives `lse`. Constraints: `lse` is `dout` without its
    channel (C1); `dv` is a value of a mix whose result has the type of `dout`
    (C2); `windows` is as in mix (C3).
  }];
  let arguments = (ins Weft_Float:$a, Weft_Float:$r, Weft_Int:$windows, Weft_Int:$doc_start, Weft_Float:$lse,
                   Weft_Float:$dout, Optional<Weft_Int>:$kv_of);
  let results = (outs Weft_Float:$dv);
  let assemblyFormat = "$a `,` $r `windows` $windows `documents` $doc_start `,` $lse `,` $dout "
                       "(`kv_of` $kv_of^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_MixGradPatternOp : Weft_PureOp<"mix_grad_pattern"> {
  let summary = "gradients of a trained pattern: sums over columns and over diagonals";
  let description = [{
    dl[i, j] = P[i, j] (sum_c dout[i, c] v[j, c] - sum_c dout[i, c] out[i, c]);
    da[c] = sum of dl[i, j] over the keys with j - s = c; dr[d] = sum over i - j =
    d. Rows and documents are summed in their order. Constraints: `dout` has the
    type of `out` (C1); `lse` is `out` without its channel (C2); `da` has the type
    of `a` and `dr` that of `r` (C3); `windows` is as in mix (C4).
  }];
  let arguments = (ins Weft_Float:$v, Weft_Float:$a, Weft_Float:$r, Weft_Int:$windows, Weft_Int:$doc_start,
                   Weft_Float:$out, Weft_Float:$lse, Weft_Float:$dout, Optional<Weft_Int>:$kv_of);
  let results = (outs Weft_Float:$da, Weft_Float:$dr);
  let assemblyFormat = "$v `,` $a `,` $r `windows` $windows `documents` $doc_start `,` $out `,` $lse `,` $dout "
                       "(`kv_of` $kv_of^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_MixDenseOp : Weft_Inferred<"mix_dense", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "attention of frozen heads by whole patterns, one number a pair of places: a control";
  let description = [{
    Query i of head h, at place g = offset + i, with s = doc_start[i], mixes the
    values at s <= j <= g:

    ```
    out[i] = sum_j p[h, g - s, j - s] v[j, kv(h)]
    ```

    v: [batch, keys, kv..., channel]; p: [heads, T, T], of the query's and the
    key's place in their document, zero behind a head's window; what stands above
    its diagonal is not read. Each head has the value head of its number, or
    kv_of[h]. p has no gradient. Source: arXiv:2609.34650, appendix C.2 (controls).

    Constraints: v has `batch`, keys, heads and a channel (C1); p is [heads, T, T]
    (C2), T at least the keys of v (C3); doc_start is int over `batch` and `pos`
    (C4); v has as many heads as p, or there is one `kv_of` a head (C5); with
    `offset`, one integer, there is one query a row (C6).
  }];
  let arguments = (ins Weft_Float:$v, Weft_Float:$p, Weft_Int:$doc_start, Optional<Weft_Int>:$offset,
                   Optional<Weft_Int>:$kv_of);
  let results = (outs Weft_Float:$out);
  let assemblyFormat = "$v `,` $p `documents` $doc_start (`offset` $offset^)? (`kv_of` $kv_of^)? "
                       "attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_MixDenseGradValueOp : Weft_PureOp<"mix_dense_grad_value"> {
  let summary = "dv[j] = sum over queries i, and heads of the value head, of p[h, i - s, j - s] dout[i]";
  let description = [{
    The sum is over i >= j of j's document, s its first place. Constraints: p is
    [heads, T, T] (C1); `dv` is a value of a mix_dense whose result has the type of
    `dout`, of at most T places (C2); there is one `kv_of` a head, or as many value
    heads as heads (C3).
  }];
  let arguments = (ins Weft_Float:$p, Weft_Int:$doc_start, Weft_Float:$dout, Optional<Weft_Int>:$kv_of);
  let results = (outs Weft_Float:$dv);
  let assemblyFormat = "$p `documents` $doc_start `,` $dout (`kv_of` $kv_of^)? attr-dict `:` "
                       "functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_MixTableOp : Weft_PureOp<"mix_table"> {
  let summary = "what products of fixed patterns read: tiles of exp(r), exp(a) and sums of rows";
  let description = [{
    Of each head, with A = max a and R = max r over its T places and its window w,

    ```
    E[d]        = exp(r[d] - R), rounded to bf16, for 0 <= d < min(w, T); else 0
    weights[j]  = exp(a[j] - A)
    inverses[i] = 1 / Z[i],  Z[i] = sum over j <= i of E[i - j] weights[j]
    lse[i]      = log Z[i] + A + R
    ```

    Where `windows` has two numbers a head (see mix), F[d] is the same for
    w <= d < T, else 0, and Z[i] has F[i - j] weights[j] of j < first[h] as well.

    With N = 8 ceil(T / 64) + 63, number 64 x + 8 i + k of a head (0 <= i, k < 8)
    is, for n = 8 x + i + k,

    ```
    ahead: E[8 (N - 32) + 7 - n]        back: E[n - 255]
    ```

    so 8 x 8 numbers are a tile of a matrix that depends on row + column alone
    (the pattern from its last row up), and any 39 tiles that follow one another
    hold all of 256 x 64. Behind a head's tiles of E come as many of F, where
    there is an F. Kernels for the GPU alone use them. Source:
    arXiv:2609.34650, section 3.2; the overlapping tiles are Weft's.

    Constraints: a and r have one type of two axes (C1) and so have weights,
    inverses and lse (C2); `windows` is as in mix (C3); `ahead` and `back` are
    [heads, 64 N], with F [heads, 128 N] (C4).
  }];
  let arguments = (ins Weft_Float:$a, Weft_Float:$r, Weft_Int:$windows);
  let results = (outs Weft_Float:$ahead, Weft_Float:$back, Weft_Float:$weights, Weft_Float:$inverses,
                 Weft_Float:$lse);
  let assemblyFormat = "$a `,` $r `windows` $windows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::weft::Cost getCost();
    static constexpr int64_t kCore = 8, kReach = 31; // rows of a tile; tiles before that of E[0]
    /// Tiles of 8 x 8 of a head of `places`: N.
    static int64_t coresOf(int64_t places) { return 8 * ((places + 63) / 64) + 2 * kReach + 1; }
  }];
}

def Weft_MixScaleOp : Weft_PureOp<"mix_scale"> {
  let summary = "values of each head times a number a place of their document";
  let description = [{
    y[b, i, h, c] = x[b, i, kv(h), c] * scale[h, i - doc_start[b, i]] for the places
    of doc_start; x may have more. kv(h) is h, or kv_of[h].

    Constraints: x has `batch`, places, heads and a channel, y the rows of
    doc_start, the heads of scale and the channel of x (C1); scale is [heads, T]
    (C2); there is one `kv_of` a head, or as many heads in x (C3).
  }];
  let arguments = (ins Weft_Float:$x, Weft_Float:$scale, Weft_Int:$doc_start, Optional<Weft_Int>:$kv_of);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$x `,` $scale `documents` $doc_start (`kv_of` $kv_of^)? attr-dict `:` "
                       "functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_MixProductOp : Weft_PureOp<"mix_product", [AttrSizedOperandSegments]> {
  let summary = "the products of fixed patterns, as tiles that mix_table made";
  let description = [{
    With E of mix_table, s = doc_start[b, i] and w = windows[h]; with two numbers a
    head (see mix) both sums also have F[h, i - j] where j - s < first[h]:

    ```
    y[b, i, h, c]    = scale[h, i - s] sum over max(s, i - w + 1) <= j <= i of E[h, i - j] x[b, j, h, c]
    back:
    y[b, j, kv, c]   = sum over heads h of kv: scale[h, j - s] sum over i >= j of j's document, i - j < w,
                       of E[h, i - j] x[b, i, h, c]
    row_lse[b, i, h] = lse[h, i - s]
    ```

    A head has the result's head of its number, or with `back` kv_of[h]. Heads are
    summed in their order. Constraints: x has `batch`, `pos`, heads and a channel
    (C1); `table` is `ahead`, with `back` `back`, of a mix_table of these heads and
    at least as many places (C2); scale is [heads, T] (C3); `windows` is as in mix
    and mix_table (C4); y is x with other heads, there with `back` and `kv_of`
    alone (C5); `lse`, like scale, and `row_lse`, [batch, pos, heads], come
    together and not with `back` (C6).
  }];
  let arguments = (ins Weft_Float:$x, Weft_Float:$table, Weft_Float:$scale, Weft_Int:$windows,
                   Weft_Int:$doc_start, Optional<Weft_Float>:$lse, Optional<Weft_Int>:$kv_of, UnitAttr:$back);
  let results = (outs Weft_Float:$y, Optional<Weft_Float>:$row_lse);
  let assemblyFormat = "(`back` $back^)? $x `,` $table `,` $scale `windows` $windows `documents` $doc_start "
                       "(`lse` $lse^)? (`kv_of` $kv_of^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_CacheUpdateOp : Weft_PureOp<"cache_update"> {
  let summary = "writes `value` into `cache` at places offset, offset + 1, ... of its second axis";
  let description = [{
    cache: [batch, keys, ...]; value: [batch, pos, ...]. Constraints: the other
    axes agree (C1); the result has the type of the cache (C2).
  }];
  let arguments = (ins Weft_Float:$cache, Weft_Float:$value, Weft_Int:$offset);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$cache `,` $value `,` $offset attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def Weft_CrossEntropyOp : Weft_Inferred<"cross_entropy", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "sum over counted targets of the negative log-likelihood";
  let description = [{
    Row r with target t >= 0 adds weight[r] (lse - (1 - smoothing) x[t] -
    smoothing mean(x) + z lse^2); a target of -1 adds nothing. The mean over
    counted targets is the recipe's business. Constraints: logits = targets'
    axes and one more, last (C1); `weight` has the targets' axes (C2).
  }];
  let arguments = (ins Weft_Float:$logits, Weft_Int:$targets, Optional<Weft_Float>:$weight,
                   Weft_Number:$z, Weft_Number:$smoothing);
  let results = (outs Weft_Float:$loss);
  let assemblyFormat = "$logits `,` $targets (`weight` $weight^)? attr-dict "
                       "`:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

def Weft_CrossEntropyGradOp : Weft_Inferred<"cross_entropy_grad"> {
  let summary = "dlogits of cross_entropy for a gradient of 1, and the loss of each row";
  let description = [{
    Constraints: logits = targets' axes and one more, last (C1); `weight` has the
    targets' axes (C2).
  }];
  let arguments = (ins Weft_Float:$logits, Weft_Int:$targets, Optional<Weft_Float>:$weight,
                   Weft_Number:$z, Weft_Number:$smoothing);
  let results = (outs Weft_Float:$dlogits, Weft_Float:$row_loss);
  let assemblyFormat = "$logits `,` $targets (`weight` $weight^)? attr-dict "
                       "`:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

def Weft_LossHeadOp : Weft_Inferred<"loss_head", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "product with the output table and cross entropy, chunked over tokens: logits are never whole";
  let description = [{
    loss = cross_entropy(contract(x, table), targets). x: targets' axes and
    `dim`; table: [vocab, dim] or [dim, vocab]. Constraints: x = targets' axes
    and one more, last (C1); `table` has that axis, of the same size, and one
    more (C2); `weight` has the targets' axes (C3).
  }];
  let arguments = (ins Weft_Float:$x, Weft_Float:$table, Weft_Int:$targets, Optional<Weft_Float>:$weight,
                   Weft_Number:$z, Weft_Number:$smoothing);
  let results = (outs Weft_Float:$loss);
  let assemblyFormat = "$x `,` $table `,` $targets (`weight` $weight^)? attr-dict "
                       "`:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

def Weft_LossHeadGradOp : Weft_Inferred<"loss_head_grad", [AttrSizedOperandSegments]> {
  let summary = "loss, dx and dtable of loss_head for a gradient of 1, in the same loop over tokens";
  let description = [{
    With `init`, dtable = init + the sum. Constraints: those of loss_head (C1, C2,
    C3); `init` has the type of `table` (C4).
  }];
  let arguments = (ins Weft_Float:$x, Weft_Float:$table, Weft_Int:$targets, Optional<Weft_Float>:$weight,
                   Optional<Weft_Float>:$init, Weft_Number:$z, Weft_Number:$smoothing);
  let results = (outs Weft_Float:$loss, Weft_Float:$dx, Weft_Float:$dtable);
  let assemblyFormat = "$x `,` $table `,` $targets (`weight` $weight^)? (`init` $init^)? "
                       "attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = kOwnCost;
}

//===----------------------------------------------------------------------===//
// Optimiser
//===----------------------------------------------------------------------===//

def Weft_NormOp : Weft_PureOp<"norm"> {
  let summary = "norm = factor sqrt(sum x^2), summed in float64 in fixed chunks";
  let description = [{
    Without `factor` it is 1. Constraints: `factor` and `norm` are single numbers (C1).
  }];
  let arguments = (ins Weft_Float:$x, Optional<Weft_Float>:$factor);
  let results = (outs Weft_Float:$norm);
  let assemblyFormat = "$x (`,` $factor^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_ClipScaleOp : Weft_PureOp<"clip_scale"> {
  let summary = "what gradients are multiplied by: factor min(1, clip / (norm + 1e-6)); NaN if norm is not finite";
  let description = [{
    `clip` 0: no clipping. Constraints: `norm`, `factor` and `scale` are single
    numbers of one type (C1).
  }];
  let arguments = (ins Weft_Float:$norm, Weft_Float:$factor, F64Attr:$clip);
  let results = (outs Weft_Float:$scale);
  let assemblyFormat = "$norm `,` $factor $clip attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Weft_AdamWOp : Weft_PureOp<"adamw"> {
  let summary = "one AdamW step, element by element";
  let description = [{
    hyper = (rate, 1 / (1 - beta1^t), 1 / (1 - beta2^t)); g = scale * grad;

    ```
    m' = beta1 m + (1 - beta1) g
    v' = beta2 v + (1 - beta2) g^2
    p' = p (1 - rate decay) - rate (m' c1) / (sqrt(v' c2) + eps)
    ```

    A scale that is NaN leaves p, m and v as they are (a skipped step).
    Source: arXiv:1711.05101, as torch.optim.AdamW. Constraints: m, v, `grad` and
    the results have the type of p (C1); `hyper` holds three numbers (C2); `scale`
    is one (C3).
  }];
  let arguments = (ins Weft_Float:$p, Weft_Float:$m, Weft_Float:$v, Weft_Float:$grad, Weft_Float:$hyper,
                   Weft_Float:$scale, F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$decay);
  let results = (outs Weft_Float:$new_p, Weft_Float:$new_m, Weft_Float:$new_v);
  let assemblyFormat = "$p `,` $m `,` $v `,` $grad `hyper` $hyper `scale` $scale `betas` $beta1 `,` $beta2 "
                       "`eps` $eps `decay` $decay attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost;
}

def Weft_PolarOp : Weft_PureOp<"polar"> {
  let summary = "about the orthogonal factor of each matrix: Newton-Schulz steps of degree five";
  let description = [{
    x: [rows, columns], or [..., rows, columns]: as many matrices, each on its own.

    ```
    y = x / (|x| + 1e-7)                          |x| = sqrt(sum x^2)
    y <- a y + (b s + c s s) y,  s = y y^T        `iterations` times
    ```

    with (a, b, c) = (3.4445, -4.7750, 2.0315). Each singular value s of y goes
    to a s + b s^3 + c s^5, so those of the result lie between about 0.68 and
    1.2023 unless they started near 0. Source: arXiv:2607.18363, Experimental
    Setup (Muon). Constraints: `x` has at least two axes (C1); the result has its type
    (C2); `iterations` is at least 1 (C3).
  }];
  let arguments = (ins Weft_Float:$x, I64Attr:$iterations);
  let results = (outs Weft_Float:$y);
  let assemblyFormat = "$x `iterations` $iterations attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = kOwnCost # [{
    /// a, b, c of the step, and what the norm is raised by.
    static constexpr double kCoefficients[] = {3.4445, -4.7750, 2.0315};
    static constexpr double kFloor = 1e-7;
  }];
}

def Weft_AcceptOp : Weft_PureOp<"accept"> {
  let summary = "`next`, or `old` in every element where `scale` is NaN: a skipped step";
  let description = [{
    Constraints: `next` and the result have the type of `old` (C1); `scale` is a
    single number (C2).
  }];
  let arguments = (ins Weft_Float:$old, Weft_Float:$next, Weft_Float:$scale);
  let results = (outs Weft_Float:$result);
  let assemblyFormat = "$old `,` $next `scale` $scale attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // WEFT_COMPUTE_OPS_TD

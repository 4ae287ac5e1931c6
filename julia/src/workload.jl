# What sessions meet first, run when the package is compiled, so that Finch.jl's compiler is machine code for our types.

const CSR = "dense(sparse_list(element(0.0), Int32, Int32))"
const WORKLOAD = (
    ("R .= 0.0\nfor i = _\nfor j = _\nR[i, j] = A[i, j] + B[i, j] * 2.0\nend\nend", "A $CSR\nB $CSR", "R $CSR", ""),
    ("R .= 0.0\nfor i = _\nfor j = _\nR[i, j] = A[i, j] * B[]\nend\nend", "A $CSR\nB scalar(0.0)", "R $CSR", ""),
    (
        "R .= 0.0\nfor i = _\nfor j = _\nR[i] += A[i, j] * B[j]\nend\nend",
        "A $CSR\nB dense(element(0.0))", "R dense(element(0.0))", "",
    ),
    (
        "R .= 0.0\nfor i = _\nW .= 0.0\nfor j = _\nfor k = _\nW[k] += A[i, j] * A[j, k]\nend\nend\nfor k = _\nR[i, k] = W[k]\nend\nend",
        "A $CSR", "R $CSR", "W sparse_bytemap(element(0.0), Int64, Int32)",
    ),
    (
        "W .= 0.0\nfor i = _\nfor j = _\nW[j, i] = A[i, j]\nend\nend\nR .= 0.0\nfor i = _\nfor j = _\nR[i, j] = W[i, j]\nend\nend",
        "A $CSR", "R $CSR", "W sparse_dict(sparse_dict(element(0.0)))",
    ),
    ("R .= 0.0\nfor i = _\nfor j = _\nR[] += A[i, j]\nend\nend", "A $CSR", "R scalar(0.0)", ""),
)

Finch.PrecompileTools.@compile_workload begin
    for (program, operands, result, workspaces) in WORKLOAD
        compile_kernel(program, operands, result, workspaces, "", "")
    end
    number = "immediate(0.0)"
    table = "table(deferred(T, `$CSR`), field(i), field(j))"
    passes("plan(query(alias(A), aggregate(immediate(+), $number, $table, field(i))), produces(alias(A)))")
end
empty!(COMPILED)

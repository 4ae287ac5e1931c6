"""
The Julia side of pyfinch's bridge: reads and prints the text of Logic programs, and runs Finch.jl's own optimizer on
them pass by pass. What is sent is never evaluated: the reader knows the node kinds, the operators of `OPERATORS` and
literals, and refuses everything else.
"""
module PyFinchBridge

using Finch
using Finch.FinchLogic
using Finch.FinchLogic: LogicNode
using Finch: FinchNotation

export parse_logic, print_logic, passes

include("operators.jl")
include("logic.jl")
include("tensors.jl")
include("kernels.jl")
include("compute.jl")
include("workload.jl")

end

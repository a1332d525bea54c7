"""Dense products of every seed's own factors on a GPU: our kernels against cuBLAS in float32 and in TF32.

    python benchmarks/dense.py [--json] [--runs 10] [--lines 2708] [--inputs 1024] [--outputs 1024]

The three products of a layer X W: itself, the gradient of X and that of W. `error` is the largest distance from the
product in double precision, over the largest number of that product.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bangs.nn.matmul import matmul_precision
from measuring import in_turns, options, show

REPEAT = 10  # products a turn


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=10, help="seeds at once")
    parser.add_argument("--lines", type=int, default=2708)
    parser.add_argument("--inputs", type=int, default=1024)
    parser.add_argument("--outputs", type=int, default=1024)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("dense.py measures a GPU, and torch finds none here")
    rows = measure(args.runs, args.lines, args.inputs, args.outputs, args.repeats, "cuda")
    show(rows, args.json, unit=f"seconds a product of all seeds; medians of {args.repeats}")


def measure(runs: int, lines: int, inputs: int, outputs: int, repeats: int, device: str) -> list[dict[str, Any]]:
    """A row for each product and each way to take it."""
    from bangs.kernels import matmul

    torch.manual_seed(0)
    x = torch.randn(runs, lines, inputs, device=device).relu()
    weight = torch.randn(runs, inputs, outputs, device=device) / inputs**0.5
    pull = torch.randn(runs, lines, outputs, device=device)
    cases: dict[str, tuple[Tensor, Tensor, Callable[[], Tensor]]] = {
        "product": (x, weight, lambda: matmul.matmul(x, weight)),
        "gradient of lines": (
            pull,
            weight.transpose(1, 2),
            lambda: matmul.matmul(pull, weight.transpose(1, 2)),
        ),
        "gradient of weight": (x.transpose(1, 2), pull, lambda: matmul.matmul_gradient(x, pull)),
    }
    rows = []
    for name, (left, right, ours) in cases.items():
        ways = {
            "cublas, float32": by_cublas(left, right, "float32"),
            "cublas, tf32": by_cublas(left, right, "tf32"),
            "bangs": ours,
        }
        true = left[:1].double() @ right[:1].double()
        times = in_turns({way: often(act) for way, act in ways.items()}, repeats)
        for way, act in ways.items():
            seconds = times[way].seconds / REPEAT
            rows.append(
                {
                    "product": name,
                    "way": way,
                    "seconds": seconds,
                    "ratio": times["cublas, float32"].seconds / times[way].seconds,
                    "operations_a_second": 2.0 * runs * lines * inputs * outputs / seconds,
                    "peak_bytes": int(torch.cuda.max_memory_allocated()),
                    "error": float((act()[:1] - true).abs().max() / true.abs().max()),
                }
            )
    return rows


def by_cublas(left: Tensor, right: Tensor, precision: str) -> Callable[[], Tensor]:
    def act() -> Tensor:
        with matmul_precision(precision):
            return left @ right

    return act


def often(act: Callable[[], Tensor]) -> Callable[[], None]:
    def turn() -> None:
        for _ in range(REPEAT):
            act()

    return turn


if __name__ == "__main__":
    main()

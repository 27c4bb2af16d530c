"""What GPUs can do at most by their datasheets: dense, without sparsity. An unknown GPU stays unknown.

Names are matched to their end, because a variant (PCIe, NVL, Laptop, a MIG slice) is another device with another peak.
"""

import re
from dataclasses import dataclass

from jobs.contract.facts import Datasheet

_ARITHMETICS = ("fp32", "tf32", "fp16", "bf16", "fp8")
_TERA = 1e12
_GIGA = 1e9


@dataclass(frozen=True)
class Peak:
    """Dense TFLOP/s by arithmetic and GB/s of memory; None where the datasheet has none or it is not certain."""

    fp32: float | None
    tf32: float | None
    fp16: float | None
    bf16: float | None
    fp8: float | None
    gb_per_s: float | None


_H100_SXM = (67, 494.5, 989, 989, 1979)

# Pattern of torch's device name -> peak. The first that matches the whole name counts.
_TABLE: list[tuple[str, Peak]] = [
    (r"Tesla P100-SXM2-16GB", Peak(10.6, None, 21.2, None, None, 732)),
    (r"Tesla V100-SXM[23]-(16|32)GB(-LS)?", Peak(15.7, None, 125, None, None, 900)),
    (r"Tesla T4", Peak(8.1, None, 65, None, None, 320)),
    (r"NVIDIA A10", Peak(31.2, 62.5, 125, 125, None, 600)),
    (r"(NVIDIA )?A100-(SXM4|PCIE)-40GB", Peak(19.5, 156, 312, 312, None, 1555)),
    (r"(NVIDIA )?A100-SXM4-80GB", Peak(19.5, 156, 312, 312, None, 2039)),
    (r"NVIDIA A100 80GB PCIe", Peak(19.5, 156, 312, 312, None, None)),
    (r"(NVIDIA )?GeForce RTX 3090", Peak(35.6, 35.6, 71, 71, None, 936)),
    (r"NVIDIA GeForce RTX 4090", Peak(82.6, 82.6, 165.2, 165.2, 330.3, 1008)),
    (r"NVIDIA GeForce RTX 5090", Peak(104.8, 104.8, 209.5, 209.5, 419, 1792)),
    (r"NVIDIA L4", Peak(30.3, 60, 121, 121, 242, 300)),
    (r"NVIDIA L40S", Peak(91.6, 183, 362, 362, 733, 864)),
    (r"NVIDIA H100 PCIe", Peak(51, 378, 756, 756, 1513, 2000)),
    (r"NVIDIA H100 80GB HBM3", Peak(*_H100_SXM, 3350)),
    (r"NVIDIA H200", Peak(*_H100_SXM, 4800)),
    (r"NVIDIA B200", Peak(None, 1125, 2250, 2250, 4500, 8000)),
]


def peak_of(device_name: str) -> Peak | None:
    """The datasheet's figures; None for a device that is not in the table."""
    return next((peak for pattern, peak in _TABLE if re.fullmatch(pattern, device_name)), None)


def datasheet_of(device_name: str) -> Datasheet | None:
    """The same in FLOP/s and bytes/s, without what the datasheet leaves out."""
    peak = peak_of(device_name)
    if peak is None:
        return None
    tera = {name: getattr(peak, name) for name in _ARITHMETICS}
    flops_per_s = {name: value * _TERA for name, value in tera.items() if value is not None}
    return Datasheet(matmul_flops_per_s=flops_per_s, bytes_per_s=peak_bytes_per_s(device_name))


def peak_flops_per_s(device_name: str, precision: str) -> float | None:
    """The dense peak of a spec's precision (fp32, tf32, bf16-mixed, fp16-true, ...) on one device; None if unknown."""
    peak = peak_of(device_name)
    if peak is None:
        return None
    tera: float | None = getattr(peak, precision.partition("-")[0])
    return None if tera is None else tera * _TERA


def peak_bytes_per_s(device_name: str) -> float | None:
    """The memory's bandwidth by the datasheet; None if unknown."""
    peak = peak_of(device_name)
    return peak.gb_per_s * _GIGA if peak and peak.gb_per_s else None

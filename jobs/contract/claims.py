"""What guides to GPU training promise, each with the studies that show on one's own machine whether it holds.

A claim is data: its words, who says so, what it promises as factors, and a study for each kind of device that can show
it. Those that a CPU can show have a study of a CPU's size.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jobs.contract.messages import gettext_noop as _
from jobs.contract.plan import Arrangement, StudyPlan

_GUIDES = _("Guides to training on GPUs, without hardware, batch size or precision")
_PYTORCH_2 = _("PyTorch 2.0's announcement, pytorch.org/get-started/pytorch-2.0 (A100)")
_TUNING = _("PyTorch's performance tuning guide")

_NUM_REPEATS = 5


class Quantity(StrEnum):
    """What a claim promises to lower."""

    TIME = "time"  # of a step
    MEMORY = "memory"  # at its peak


@dataclass(frozen=True)
class Promise:
    """The baseline's figure over the candidate's is said to be at least this factor; 1 only promises a direction."""

    quantity: Quantity
    at_least: float


@dataclass(frozen=True)
class Preset:
    """A study that shows a claim on one kind of device: a baseline, and one configuration beside it."""

    device: str  # "cpu" or "cuda": the kind that the claim is shown on
    plan: StudyPlan
    num_gpus: int = 0  # that it takes


@dataclass(frozen=True)
class Claim:
    """A promise, who makes it, and how to see for oneself."""

    key: str
    title: str
    words: str
    source: str
    promises: tuple[Promise, ...]
    presets: tuple[Preset, ...]

    def preset(self, device: str) -> Preset | None:
        """Its study on this kind of device, None where that cannot show it."""
        return next((preset for preset in self.presets if preset.device == device), None)


def _on_cpu(base: dict[str, Any], **changes: Any) -> Preset:
    return Preset("cpu", _plan({"device": "cpu"} | base, changes))


def _on_gpu(base: dict[str, Any], num_gpus: int = 1, **changes: Any) -> Preset:
    return Preset("cuda", _plan({"device": "cuda"} | base, changes), num_gpus)


def _against_cpu(base: dict[str, Any]) -> tuple[Preset, ...]:
    return (Preset("cuda", _plan({"device": "cpu"} | base, {"device": "cuda"}), num_gpus=1),)


def _plan(base: dict[str, Any], changes: dict[str, Any]) -> StudyPlan:
    common = {"phase_steps": 0, "optimizer": "adamw"}
    return StudyPlan(
        base=common | base, arrangement=Arrangement.LIST, configurations=[changes], num_repeats=_NUM_REPEATS
    )


_TEXT = {"model": "gpt-tiny", "dataset": "stdlib-text", "micro_batch_size": 16, "num_steps": 150}
_DIGITS = {"model": "convnet", "dataset": "digits", "micro_batch_size": 64, "num_steps": 300}
_RESNET50 = {"model": "resnet50", "dataset": "synthetic-images", "micro_batch_size": 64, "num_steps": 120}
_RESNET18_SMALL = {"model": "resnet18", "dataset": "synthetic-images", "image_size": 32, "micro_batch_size": 128}
_BERT = {"model": "bert-base", "dataset": "synthetic-sequences", "micro_batch_size": 32, "num_steps": 120}
_BERT_LARGE = {"model": "bert-large", "dataset": "synthetic-sequences", "micro_batch_size": 16, "num_steps": 100}
_LOADED = {"num_workers": 2, "persistent_workers": True}

_FASTER = Promise(Quantity.TIME, 1.0)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "gpu",
        _("GPU against CPU"),
        _("A GPU trains 10 to 100 times faster than a CPU."),
        _GUIDES,
        (Promise(Quantity.TIME, 10),),
        _against_cpu({"model": "gpt2", "dataset": "synthetic-tokens", "micro_batch_size": 4, "num_steps": 20}),
    ),
    Claim(
        "gpu-small-images",
        _("Images of CIFAR-10's size on a GPU"),
        _("Training on CIFAR-10 is 10 times faster on a GPU."),
        _GUIDES,
        (Promise(Quantity.TIME, 10),),
        _against_cpu(_RESNET18_SMALL | {"num_steps": 30}),
    ),
    Claim(
        "gpu-inference",
        _("Inference with ResNet-50 on a GPU"),
        _("ResNet-50 classifies 100 images 9.7 times faster on a GPU."),
        _GUIDES,
        (Promise(Quantity.TIME, 9.7),),
        _against_cpu(_RESNET50 | {"task": "inference", "micro_batch_size": 100, "num_steps": 12}),
    ),
    Claim(
        "gpu-bert",
        _("BERT on a GPU"),
        _("Fine-tuning BERT is 10 times faster on a GPU."),
        _GUIDES,
        (Promise(Quantity.TIME, 10),),
        _against_cpu(_BERT | {"micro_batch_size": 8, "num_steps": 20}),
    ),
    Claim(
        "amp",
        _("Mixed precision"),
        _("Mixed precision makes training 30 to 50 % faster."),
        _GUIDES,
        (Promise(Quantity.TIME, 1.3),),
        (_on_cpu(_TEXT, precision="bf16-mixed"), _on_gpu(_BERT, precision="bf16-mixed")),
    ),
    Claim(
        "amp-resnet50",
        _("Mixed precision on ResNet-50"),
        _("Mixed precision makes ResNet-50 1.5 times faster and saves 30 to 50 % of its memory."),
        _GUIDES,
        (Promise(Quantity.TIME, 1.5), Promise(Quantity.MEMORY, 1 / 0.7)),
        (_on_gpu(_RESNET50, precision="fp16-mixed"),),
    ),
    Claim(
        "amp-bert-large",
        _("Mixed precision on BERT-large"),
        _("Mixed precision makes BERT-large twice as fast and saves 40 to 60 % of its memory."),
        _GUIDES,
        (Promise(Quantity.TIME, 2.0), Promise(Quantity.MEMORY, 1 / 0.6)),
        (_on_gpu(_BERT_LARGE, precision="fp16-mixed"),),
    ),
    Claim(
        "data-loading",
        _("Data loading"),
        _("Loader workers, and pinned memory on a GPU, make training 20 to 40 % faster."),
        _GUIDES,
        (Promise(Quantity.TIME, 1.2),),
        (
            _on_cpu(_DIGITS | {"data_loading": "dataloader"}, **_LOADED),
            _on_gpu(
                _RESNET50 | {"data_loading": "dataloader", "precision": "bf16-mixed"},
                **_LOADED | {"num_workers": 4, "pin_memory": True, "non_blocking": True},
            ),
        ),
    ),
    Claim(
        "accumulation",
        _("Gradient accumulation"),
        _("Accumulating gradients solves memory: the same global batch needs less."),
        _GUIDES,
        (Promise(Quantity.MEMORY, 1.0),),
        (
            _on_cpu(_TEXT | {"micro_batch_size": 64, "num_steps": 30}, micro_batch_size=8, grad_accum_steps=8),
            _on_gpu(_RESNET50, micro_batch_size=8, grad_accum_steps=8),
        ),
    ),
    Claim(
        "ddp",
        _("DDP against DataParallel"),
        _("DistributedDataParallel is more efficient than DataParallel."),
        _GUIDES,
        (_FASTER,),
        (
            _on_gpu(
                _RESNET50 | {"parallelism": "data_parallel", "num_devices": 2, "micro_batch_size": 128},
                num_gpus=2,
                parallelism="ddp",
                micro_batch_size=64,
            ),
        ),
    ),
    Claim(
        "cudnn-benchmark",
        _("cuDNN benchmark"),
        _("Letting cuDNN try its algorithms speeds up convolutions."),
        _TUNING,
        (_FASTER,),
        (_on_gpu(_RESNET50, cudnn_benchmark=True),),
    ),
    Claim(
        "compile",
        _("torch.compile"),
        _("torch.compile makes training in float32 21 % faster on average."),
        _PYTORCH_2,
        (Promise(Quantity.TIME, 1.21),),
        (_on_cpu(_TEXT, compile_mode="default"), _on_gpu(_BERT, compile_mode="default")),
    ),
    Claim(
        "cuda-graphs",
        _("CUDA graphs"),
        _("Recording the step as a CUDA graph makes short steps faster, because launching kernels costs nothing."),
        _TUNING,
        (_FASTER,),
        (_on_gpu(_TEXT | {"num_steps": 400, "optimizer_impl": "fused"}, cuda_graph=True),),
    ),
)


def claim_named(key: str) -> Claim | None:
    """The claim of that name."""
    return next((claim for claim in CLAIMS if claim.key == key), None)

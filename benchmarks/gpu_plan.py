"""What is measured on a GPU: questions, each with its configurations as specs of the engine."""

from dataclasses import dataclass
from typing import Any

Options = dict[str, Any]

_COMMON: Options = {"device": "cuda", "phase_steps": 0, "seed": 0}
GPT2 = _COMMON | {
    "model": "gpt2",
    "dataset": "synthetic-tokens",
    "sequence_length": 1024,
    "micro_batch_size": 16,
    "num_steps": 80,
}
RESNET50 = _COMMON | {
    "model": "resnet50",
    "dataset": "synthetic-images",
    "image_size": 224,
    "micro_batch_size": 256,
    "num_steps": 60,
}
MLP = _COMMON | {
    "model": "mlp",
    "dataset": "digits",
    "micro_batch_size": 32,
    "num_steps": 4000,
    "optimizer_impl": "fused",
}

# Option by option, as the ablation switches them; what they are together is the best that is known.
GPT2_OPTIONS: dict[str, Options] = {
    "bf16-mixed": {"precision": "bf16-mixed"},
    "compiled": {"compile_mode": "default"},
    "fused optimizer": {"optimizer_impl": "fused"},
}
RESNET50_OPTIONS: dict[str, Options] = {
    "bf16-mixed": {"precision": "bf16-mixed"},
    "channels_last": {"channels_last": True},
    "compiled": {"compile_mode": "default"},
    "fused optimizer": {"optimizer_impl": "fused"},
    "cudnn.benchmark": {"cudnn_benchmark": True},
}


@dataclass(frozen=True)
class Question:
    """Configurations by name; factors are of speed against the first one."""

    title: str
    configurations: dict[str, Options]
    aim: str = ""


def together(options: dict[str, Options]) -> Options:
    """All options at once."""
    return {field: value for fields in options.values() for field, value in fields.items()}


def ablation(work: Options, options: dict[str, Options], others: dict[str, Options]) -> dict[str, Options]:
    """The plain run, each option alone, all of them, all but one; and `others`, which are added to all of them."""
    best = work | together(options)
    alone = {f"only {name}": work | fields for name, fields in options.items()}
    without = {
        f"all without {name}": work | together({other: options[other] for other in options if other != name})
        for name in options
    }
    added = {f"all with {name}": best | fields for name, fields in others.items()}
    return {"plain fp32": work} | alone | {"all": best} | without | added


_FLASH_GPT2 = GPT2 | together(GPT2_OPTIONS) | {"sdpa_backend": "flash"}
QUESTIONS: dict[str, Question] = {
    "mfu": Question(
        "gpt2 at 1,024 tokens: bf16-mixed, compiled, flash attention",
        {f"batch {size}": _FLASH_GPT2 | {"micro_batch_size": size} for size in (16, 32, 64)}
        | {
            "batch 32, max-autotune": _FLASH_GPT2
            | {"micro_batch_size": 32, "compile_mode": "max-autotune-no-cudagraphs"},
            "batch 32, whole-step graph": _FLASH_GPT2 | {"micro_batch_size": 32, "cuda_graph": True},
        },
        aim="MFU 50 % or more",
    ),
    "resnet50": Question(
        "resnet50 at 224x224: channels_last bf16-mixed beside eager fp32",
        {
            "eager fp32": RESNET50,
            "channels_last bf16-mixed": RESNET50 | {"channels_last": True, "precision": "bf16-mixed"},
            "the same, compiled": RESNET50
            | {"channels_last": True, "precision": "bf16-mixed", "compile_mode": "default"},
        },
    ),
    "graph": Question(
        "mlp/digits: the whole step as one CUDA graph",
        {
            "eager": MLP,
            "graph": MLP | {"cuda_graph": True},
            "compiled": MLP | {"compile_mode": "default"},
            "compiled and graph": MLP | {"compile_mode": "default", "cuda_graph": True},
        },
    ),
    "ablation-gpt2": Question(
        "gpt2 at 1,024 tokens, batch 16: what each option does",
        ablation(
            GPT2,
            GPT2_OPTIONS,
            {
                "math attention": {"sdpa_backend": "math"},
                "cudnn attention": {"sdpa_backend": "cudnn"},
                "whole-step graph": {"cuda_graph": True},
                "reduce-overhead": {"compile_mode": "reduce-overhead"},
                "activation checkpointing": {"activation_checkpointing": True},
            },
        )
        | {"only tf32": GPT2 | {"precision": "tf32"}},
    ),
    "ablation-resnet50": Question(
        "resnet50 at 224x224, batch 256: what each option does",
        ablation(RESNET50, RESNET50_OPTIONS, {"whole-step graph": {"cuda_graph": True}})
        | {"only tf32": RESNET50 | {"precision": "tf32"}},
    ),
}

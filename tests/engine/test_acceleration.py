"""Compilation, kernels, layouts and recomputation: each really happens, and the losses stay those of the plain run."""

from contextlib import contextmanager

import pytest
import torch
import torch.distributed as dist
from engine_runs import DIGITS, Recording, run_command, train, write_spec
from torch import nn

from jobs.contract.errors import RefusedSpec
from jobs.contract.events import Warned
from jobs.contract.spec import TrainSpec
from workers.engine.backends import apply_backends
from workers.engine.blocks import checkpoint_activations
from workers.engine.compile import CompileCounts, compile_model
from workers.engine.data import load_dataset
from workers.engine.ddp import wrap_in_ddp
from workers.engine.environment import environment_of
from workers.engine.models import blocks_of, build_model
from workers.engine.precision import Arithmetic
from workers.engine.report import Report

CPU = torch.device("cpu")
GPT = {"model": "gpt-tiny", "dataset": "stdlib-text", "micro_batch_size": 4, "num_steps": 4, "phase_steps": 0}
MLP = {"num_steps": 4, "phase_steps": 0}


def spec(**fields):
    return TrainSpec(**DIGITS | fields)


@pytest.fixture(scope="module")
def gpt():
    return train(**GPT)


def warned_fields(ran):
    return [event.finding.field for event in ran.events if isinstance(event, Warned)]


@pytest.mark.parametrize(("asked", "seen"), [("auto", "flash"), ("flash", "flash"), ("math", "math")])
def test_the_kernel_of_attention_is_the_one_asked_for(gpt, asked, seen):
    ran = train(**GPT, sdpa_backend=asked)
    assert ran.summary.attention_kernel == seen
    assert ran.losses == pytest.approx(gpt.losses, abs=1e-4)


@pytest.mark.parametrize("fields", [{"sdpa_backend": "math"}, {"channels_last": True}], ids=str)
def test_an_option_that_a_model_gives_nothing_to_do_is_warned_about(fields):
    assert warned_fields(train(**MLP, **fields)) == list(fields)


@pytest.mark.parametrize("fields", [{"activation_checkpointing": True}, {"compile_mode": "default"}], ids=str)
def test_a_model_without_blocks_is_refused_what_is_done_block_by_block(fields):
    scope = {"compile_scope": "block"} if "compile_mode" in fields else {}
    with pytest.raises(RefusedSpec, match="no repeated blocks"):
        train(**MLP, **fields, **scope)


def test_checkpointed_blocks_are_computed_twice_and_train_alike(gpt):
    model = build_model("gpt-tiny", load_dataset("stdlib-text"))
    names, calls = list(model.state_dict()), []
    blocks_of(model)[0].attention_norm.register_forward_hook(lambda *_: calls.append(1))
    checkpoint_activations(model)
    model(torch.zeros(1, 8, dtype=torch.long)).sum().backward()
    assert len(calls) == 2
    assert list(model.state_dict()) == names
    assert train(**GPT, activation_checkpointing=True).losses == pytest.approx(gpt.losses, abs=1e-5)


def test_channels_last_holds_for_weights_and_for_what_reaches_a_convolution():
    asked = spec(model="convnet", channels_last=True)
    arithmetic = Arithmetic.of(asked, CPU)
    model = arithmetic.prepare(nn.Sequential(nn.Conv2d(3, 4, 3)))
    seen = []
    model[0].register_forward_pre_hook(lambda _module, inputs: seen.append(inputs[0]))
    arithmetic.build_forward(model)(torch.ones(2, 3, 8, 8))
    for tensor in (model[0].weight, seen[0]):
        assert tensor.is_contiguous(memory_format=torch.channels_last)
        assert not tensor.is_contiguous()


def test_channels_last_trains_alike():
    convnet = {"model": "convnet", **MLP}
    ran = train(**convnet, channels_last=True)
    assert ran.losses == pytest.approx(train(**convnet).losses, abs=1e-4)
    assert warned_fields(ran) == []


def test_switches_of_backends_are_set_both_ways():
    apply_backends(spec(deterministic=True, cudnn_benchmark=True, sdpa_backend="math"))
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.backends.cudnn.benchmark
    assert torch.backends.cuda.math_sdp_enabled()
    assert not torch.backends.cuda.flash_sdp_enabled()
    apply_backends(spec())
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark
    assert torch.backends.cuda.flash_sdp_enabled()


def test_what_must_be_set_before_cuda_starts_is_in_the_environment(monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    plain = environment_of(spec())
    assert set(plain) == {"TORCHINDUCTOR_CACHE_DIR"}
    assert environment_of(spec(deterministic=True))["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert environment_of(spec(expandable_segments=True))["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/somewhere")
    assert environment_of(spec())["TORCHINDUCTOR_CACHE_DIR"] == "/somewhere"


def test_a_deterministic_run_says_the_same_twice():
    one, two = (train(**MLP, deterministic=True) for _ in range(2))
    assert one.losses == pytest.approx(two.losses, abs=1e-6)


@pytest.mark.slow
def test_a_second_process_starts_from_the_compile_cache(tmp_path):
    cache = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    path = write_spec(tmp_path, **MLP, compile_mode="default")
    cold, warm = (run_command(path, environment=cache) for _ in range(2))
    assert (cold.exit_code, warm.exit_code) == (0, 0), cold.stderr + warm.stderr
    assert (cold.summary.num_compile_cache_hits, cold.summary.num_compile_cache_misses) == (0, 1)
    assert (warm.summary.num_compile_cache_hits, warm.summary.num_compile_cache_misses) == (1, 0)
    assert warm.losses == pytest.approx(cold.losses, abs=1e-6)


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_every_compile_mode_trains_as_eager_does(mode):
    eager, compiled = train(**MLP), train(**MLP, compile_mode=mode)
    assert compiled.losses == pytest.approx(eager.losses, abs=1e-4)
    assert (compiled.summary.num_graphs, compiled.summary.num_graph_breaks) == (1, 0)
    assert compiled.summary.num_recompiles == 0


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("scope", ["model", "block"])
def test_the_compiled_gpt_trains_as_the_eager_one(gpt, scope, checkpointing):
    compiled = train(**GPT, compile_mode="default", compile_scope=scope, activation_checkpointing=checkpointing)
    assert compiled.losses == pytest.approx(gpt.losses, abs=1e-4)
    assert compiled.summary.num_graph_breaks == 0


def test_compiled_blocks_keep_their_names():
    asked = spec(**GPT | {"compile_mode": "default", "compile_scope": "block"})
    model = build_model("gpt-tiny", load_dataset("stdlib-text"))
    names = list(model.state_dict())
    assert compile_model(model, model, asked) is model
    assert list(model.state_dict()) == names
    assert all(hasattr(block.forward, "get_compiler_config") for block in blocks_of(model))


class Breaking(nn.Module):
    """Asks for a number in the middle."""

    def forward(self, inputs):
        return inputs * 2 if inputs.sum().item() > 0 else inputs


def test_graph_breaks_and_recompiles_are_counted():
    asked, model = spec(compile_mode="default"), Breaking()
    torch._dynamo.reset()
    compiled = compile_model(model, model, asked)
    compiled(torch.ones(2, 2))
    counts, report = CompileCounts(asked), Report(Recording())
    counts.end_first_step()
    compiled(torch.ones(2, 2, dtype=torch.float64))
    counts.store(report)
    assert report.summary.num_graph_breaks >= 1
    assert report.summary.num_recompiles >= 1


class Opaque(nn.Module):
    """Nothing of it can be compiled."""

    @torch.compiler.disable
    def forward(self, inputs):
        return inputs * 2


def test_a_model_of_which_nothing_was_compiled_says_so():
    asked, model, recording = spec(compile_mode="default"), Opaque(), Recording()
    torch._dynamo.reset()
    compile_model(model, model, asked)(torch.ones(2, 2))
    counts = CompileCounts(asked)
    counts.end_first_step()
    counts.store(Report(recording))
    (warned,) = recording.events
    assert "nothing that it could compile" in warned.finding.sentence


@contextmanager
def alone():
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def test_ddps_options_reach_it():
    with alone():
        fields = {"ddp_bucket_cap_mb": 3, "ddp_gradient_as_bucket_view": True, "ddp_static_graph": True}
        wrapped = wrap_in_ddp(nn.Linear(2, 2), spec(parallelism="ddp", **fields), CPU)
        assert wrapped.bucket_bytes_cap == 3 * 2**20
        assert (wrapped.gradient_as_bucket_view, wrapped.static_graph) == (True, True)
        plain = wrap_in_ddp(nn.Linear(2, 2), spec(parallelism="ddp", ddp_find_unused_parameters=True), CPU)
        assert plain.bucket_bytes_cap == 25 * 2**20
        assert (plain.gradient_as_bucket_view, plain.static_graph) == (False, False)
        assert plain.find_unused_parameters
        hooked = wrap_in_ddp(nn.Linear(2, 2), spec(parallelism="ddp", ddp_comm_hook="powersgd"), CPU)
        assert [hook.__name__ for hook, _state in hooked._comm_hooks] == ["powerSGD_hook"]
        del wrapped, plain, hooked  # a group must outlive what uses it


def test_gradients_are_views_of_their_buckets_where_asked():
    with alone():
        wrapped = wrap_in_ddp(nn.Linear(2, 2), spec(parallelism="ddp", ddp_gradient_as_bucket_view=True), CPU)
        wrapped(torch.ones(1, 2)).sum().backward()
        assert wrapped.module.weight.grad._base is not None
        del wrapped


@pytest.mark.parametrize(("asked", "kind"), [(True, nn.SyncBatchNorm), (False, nn.BatchNorm2d)])
def test_batch_norms_are_synchronized_where_asked(monkeypatch, asked, kind):
    # DDP itself takes these on GPUs only, so here it is left out of its own wrapping; tests/gpu trains with it.
    monkeypatch.setattr("workers.engine.ddp.DistributedDataParallel", lambda model, **_options: model)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sequential(nn.BatchNorm2d(2)))
    wrapped = wrap_in_ddp(model, spec(parallelism="ddp", sync_batchnorm=asked), CPU)
    assert type(wrapped[1][0]) is kind
    assert list(wrapped.state_dict()) == list(model.state_dict())


def test_a_recorded_step_computes_activations_again_without_putting_random_streams_back(monkeypatch):
    put_back = []
    monkeypatch.setattr(torch, "set_rng_state", put_back.append)
    for in_graph in (True, False):
        model = build_model("gpt-tiny", load_dataset("stdlib-text"))
        checkpoint_activations(model, in_graph=in_graph)
        model(torch.zeros(1, 8, dtype=torch.long)).sum().backward()
        assert bool(put_back) == (not in_graph)

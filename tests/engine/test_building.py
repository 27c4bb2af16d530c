"""A default device is set while the model is built, and never while it trains."""

import pytest
import torch
from engine_runs import train

from workers.engine import assembly, checks


@pytest.mark.parametrize("on_device", [True, False])
def test_a_default_device_is_set_for_the_build_only(monkeypatch, on_device):
    depths = {"build": set(), "step": set()}
    build = assembly.build_model

    def look(module, _inputs, _outputs):
        if module.training:  # probes before the first step and the evaluation after the last are no steps
            depths["step"].add(torch._C._len_torch_function_stack())

    def watched(*arguments):
        depths["build"].add(torch._C._len_torch_function_stack())
        model = build(*arguments)
        model.register_forward_hook(look)
        return model

    monkeypatch.setattr(assembly, "build_model", watched)
    monkeypatch.setattr(checks, "check", lambda *_: [])  # a rule refuses on a CPU what changes nothing there
    train(build_on_device=on_device, num_steps=3, phase_steps=0)
    assert depths == {"build": {int(on_device)}, "step": {0}}

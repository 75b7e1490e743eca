"""Lets the real OpenRLHF trainer run without a GPU, in every process that has this folder on PYTHONPATH.

Python imports ``sitecustomize`` at start-up. Each function below changes one module, right after that
module was imported, so that processes that never import it pay nothing. What is changed is where tensors
live and how they travel; nothing of sampling, reward, advantage, loss, optimizer or checkpoint is touched.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

CHANGES = {}


def once_imported(name):
    def register(change):
        CHANGES[name] = change
        return change

    return register


class Finder(MetaPathFinder):
    """Finds the modules that are to be changed, as Python would, and changes them once they have run."""

    def find_spec(self, fullname, path=None, target=None):
        change = CHANGES.get(fullname)
        spec = change and PathFinder.find_spec(fullname, path, target)
        if not spec or not spec.loader:
            return None
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            change(module)

        spec.loader.exec_module = exec_module
        return spec


class Here(str):
    """What ``torch.cuda.current_device()`` gives: ``cpu`` to ``tensor.to``, and 0 in ``f"cuda:{device}"``."""

    __slots__ = ()

    def __format__(self, _spec):
        return "0"


@once_imported("openrlhf")
def cuda_is_the_cpu(_):
    import torch

    torch.cuda.current_device = lambda: Here("cpu")
    for name in ("current_stream", "empty_cache", "set_device", "synchronize"):
        setattr(torch.cuda, name, lambda *_args, **_kwargs: None)


@once_imported("openrlhf.utils.deepspeed.deepspeed")
def meshes_and_adam_of_the_cpu(module):
    mesh, config = module.init_device_mesh, module.get_train_ds_config

    def train_config(*args, **kwargs):
        values = config(*args, **kwargs)
        optimizer = values.get("optimizer", {})
        if optimizer.get("type") == "AdamW":
            optimizer["params"]["torch_adam"] = True  # DeepSpeed's own is compiled with g++ at first use
        return values

    module.init_device_mesh = lambda _device, *args, **kwargs: mesh("cpu", *args, **kwargs)
    module.get_train_ds_config = train_config


@once_imported("deepspeed.comm.torch")
def reduce_with_gloo(module):
    module.build_shm_op = lambda: None  # the shared-memory all-reduce is compiled with g++ too


@once_imported("openrlhf.utils.distributed_util")
def weights_travel_by_tcp(module):
    class Group:
        """What the trainer needs of NCCL's communicator, over vLLM's own process group."""

        def __init__(self, *address):
            from vllm.distributed.utils import StatelessProcessGroup

            self.group = StatelessProcessGroup.create(*address)

        def broadcast(self, tensor, src, stream=None):
            import torch

            with torch.no_grad():
                received = self.group.broadcast(tensor.detach().contiguous(), src)
                if self.group.rank != src:
                    tensor.copy_(received)

    def join(master_address, master_port, rank, world_size, _device):
        return Group(master_address, master_port, rank, world_size)

    module.stateless_init_process_group = join


@once_imported("openrlhf.trainer.ray.vllm_worker_wrap")
def weights_arrive_on_the_cpu(module):
    import torch

    update = module.WorkerWrap.update_weight

    def update_weight(self, *args, **kwargs):
        empty = torch.empty
        torch.empty = lambda *shape, **named: empty(*shape, **{**named, "device": "cpu"})
        try:
            return update(self, *args, **kwargs)
        finally:
            torch.empty = empty

    module.WorkerWrap.update_weight = update_weight


@once_imported("vllm.model_executor.layers.utils")
def weights_stay_where_they_can_be_replaced(module):
    """On a CPU vLLM packs linear weights and drops the originals, which an update would have to write to."""

    def dispatch_cpu_unquantized_gemm(layer, remove_weight):
        import torch

        layer.cpu_linear = torch.nn.functional.linear

    module.dispatch_cpu_unquantized_gemm = dispatch_cpu_unquantized_gemm


sys.meta_path.insert(0, Finder())

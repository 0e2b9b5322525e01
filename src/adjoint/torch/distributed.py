"""`torch.distributed`, which is out of scope: programs ask whether they are one of several processes, and are not.

>>> import adjoint.torch as torch
>>> torch.distributed.is_available()
False
"""

from __future__ import annotations

from adjoint.torch.missing import stand_ins


def is_available() -> bool:
    """Whether there are several processes: never."""
    return False


is_initialized = is_nccl_available = is_gloo_available = is_mpi_available = is_torchelastic_launched = is_available

__getattr__ = stand_ins(
    __name__,
    "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions Backend BackendConfig BarrierOptions BroadcastOptions "
    "BuiltinCommHookType DebugLevel DeviceMesh DistBackendError DistError DistNetworkError DistStoreError FileStore "
    "GatherOptions GradBucket GroupMember GroupName HashStore Logger P2POp PrefixStore ProcessGroup ProcessGroupGloo "
    "ProcessGroupMPI ProcessGroupNCCL QueueEmptyError RankType ReduceOp ReduceOptions ReduceScatterOptions Reducer "
    "ScatterOptions Store TCPStore Work algorithms all_gather all_gather_coalesced all_gather_into_tensor "
    "all_gather_object all_gather_single all_reduce all_reduce_coalesced all_to_all all_to_all_single autograd "
    "barrier batch_isend_irecv breakpoint broadcast broadcast_object_list c10d_logger checkpoint config constants "
    "default_pg_timeout destroy_process_group device_mesh distributed_c10d elastic fsdp gather gather_object "
    "get_backend get_backend_config get_debug_level get_default_backend_for_device get_global_rank get_group_rank "
    "get_node_local_rank get_pg_count get_process_group_ranks get_rank get_world_size group init_device_mesh "
    "init_process_group irecv is_backend_available is_ucc_available is_xccl_available isend launch launcher "
    "logging_handlers monitored_barrier new_group new_subgroups new_subgroups_by_enumeration nn optim pipelining "
    "record_comm recv recv_object_list reduce reduce_op reduce_scatter reduce_scatter_single reduce_scatter_tensor "
    "register_rendezvous_handler remote_device rendezvous rpc run scatter scatter_object_list send send_object_list "
    "set_debug_level set_debug_level_from_env shrink_group split_group supports_complex tensor utils",
)

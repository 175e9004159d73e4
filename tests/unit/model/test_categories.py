"""Classes, operations and user patterns, by the names that traces really hold (FACTS.md)."""

from __future__ import annotations

import pytest

from rankscope.errors import UsageError
from rankscope.model.categories import (
    CATEGORY_OF_TEXT,
    COALESCED_OP,
    UNKNOWN_OP,
    Category,
    Classifier,
    EventClass,
    op_of_collective_name,
    op_of_kernel_name,
)

COMMUNICATING_KERNELS = (
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclSymDevKernel_AllReduce_RSxLD_AGxST(ncclSymDevArgs)",
    "NCCLDEVKERNEL_SendRecv(void)",
    "rcclGenericKernel(ncclDevComm*)",
    "void ncclKernel_Something<4>()",
    "void deep_ep::internode::dispatch<true, 4>(int4*)",
    "nvshmemi_transfer_rma_p2p",
    "void vllm::cross_device_reduce_1stage<__half, 8>(void*)",
    "void two_shot_all_reduce_kernel<float, 8>(float*)",
    "multimem_all_gather_kernel",
    "mscclpp::AllreducePacket<float>",
    "oneapi::ccl::allreduce_kernel",
    "hcom_allReduce_",
    "void trtllm::oneShotAllReduceKernel<float>()",
    "void quickreduce::allreduce_prototype<4>()",
)
COMPUTING_KERNELS = (
    "ampere_sgemm_128x64_tn",
    "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)",
    "void at::native::vectorized_gather_kernel<16, long>(char*)",
    "triton_poi_fused_nccl_like_0",
    "void (anonymous namespace)::softmax_warp_forward<float>()",
    "",
)


@pytest.mark.parametrize("name", COMMUNICATING_KERNELS)
def test_kernels_that_communicate(name: str) -> None:
    assert Classifier().classify(Category.KERNEL, name) is EventClass.COMMUNICATION


@pytest.mark.parametrize("name", COMPUTING_KERNELS)
def test_kernels_that_compute(name: str) -> None:
    assert Classifier().classify(Category.KERNEL, name) is EventClass.COMPUTE


@pytest.mark.parametrize("name", ["__amd_rocclr_copyBuffer", "__amd_rocclr_fillBufferAligned"])
def test_copy_kernels_of_rocm_are_memory(name: str) -> None:
    assert Classifier().classify(Category.KERNEL, name) is EventClass.MEMORY


@pytest.mark.parametrize(
    ("category", "name", "event_class"),
    [
        (Category.MEMCPY, "Memcpy HtoD (Pageable -> Device)", EventClass.MEMORY),
        (Category.MEMCPY, "ncclSomething", EventClass.MEMORY),
        (Category.MEMSET, "Memset (Device)", EventClass.MEMORY),
        (Category.SYNC, "Stream Wait Event", EventClass.SYNC),
        (Category.USER_ANNOTATION, "nccl:all_reduce", EventClass.ANNOTATION),
        (Category.USER_ANNOTATION, "gloo:all_reduce", EventClass.COMMUNICATION),
        (Category.USER_ANNOTATION, "mpi:broadcast", EventClass.COMMUNICATION),
        (Category.USER_ANNOTATION, "my gloo:all_reduce", EventClass.ANNOTATION),
        (Category.GPU_ANNOTATION, "nccl:all_reduce", EventClass.ANNOTATION),
        (Category.GPU_ANNOTATION, "gloo:all_reduce", EventClass.ANNOTATION),
        (Category.CPU_OP, "aten::mm", EventClass.HOST),
        (Category.RUNTIME, "cudaLaunchKernel", EventClass.HOST),
        (Category.OTHER, "ncclDevKernel_AllReduce", EventClass.HOST),
    ],
)
def test_class_of_what_is_no_kernel(category: Category, name: str, event_class: EventClass) -> None:
    assert Classifier().classify(category, name) is event_class


def test_old_spellings_of_categories() -> None:
    """FACTS: older files write "Kernel", "Memcpy"; the reader asks in lower case."""
    assert CATEGORY_OF_TEXT["kernel"] == Category.KERNEL
    assert CATEGORY_OF_TEXT["memcpy"] == CATEGORY_OF_TEXT["gpu_memcpy"] == Category.MEMCPY
    assert CATEGORY_OF_TEXT["operator"] == CATEGORY_OF_TEXT["cpu_op"] == Category.CPU_OP
    assert CATEGORY_OF_TEXT["hip_runtime"] == CATEGORY_OF_TEXT["cuda_driver"] == Category.RUNTIME
    assert all(text == text.lower() for text in CATEGORY_OF_TEXT)


def test_a_pattern_of_the_user_counts_beside_the_built_in_ones() -> None:
    classifier = Classifier(extra_patterns=("^my_ring_", r"exchange\(halo"))
    for name in ("MY_RING_step", "void exchange(halo<3>)", "ncclDevKernel_AllReduce"):
        assert classifier.classify(Category.KERNEL, name) is EventClass.COMMUNICATION
    assert classifier.classify(Category.KERNEL, "not_my_ring_step") is EventClass.COMPUTE


def test_all_bad_patterns_are_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        Classifier(extra_patterns=("good", "bad(", "*worse"))
    message = str(caught.value)
    assert "'bad('" in message
    assert "'*worse'" in message
    assert "'good'" not in message
    assert "backslash" in message  # what to do next


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
        ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "broadcast"),
        ("ncclKernel_Reduce_RING_LL_Sum_float(ncclDevComm*)", "reduce"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv"),
        ("ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)", UNKNOWN_OP),
        ("ncclDevKernel_Generic_1(AllReduceTask)", UNKNOWN_OP),  # what stands in the brackets says nothing
        ("void deep_ep::intranode::combine<4>()", "all_to_all"),
        ("void vllm::cross_device_reduce_2stage<__half, 8>()", "all_reduce"),
        ("ccl_alltoallv_kernel", "all_to_all"),
        ("gemm", UNKNOWN_OP),
    ],
)
def test_op_of_a_kernel(name: str, op: str) -> None:
    assert op_of_kernel_name(name) == op


@pytest.mark.parametrize(
    ("text", "op"),
    [
        ("allreduce", "all_reduce"),
        ("allreduce_coalesced", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("all_gather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("_broadcast_oop", "broadcast"),
        ("_reduce_oop", "reduce"),
        ("recvAnySource", "recv"),
        ("barrier", "barrier"),
        ("coalesced", COALESCED_OP),
        ("nccl:all_reduce", "all_reduce"),
        ("nccl:_all_gather_base", "all_gather"),
        ("nccl:recv 3<-1", "recv"),
        ("nccl:send 0->1", "send"),
        ("nccl:coalesced", COALESCED_OP),
        ("gloo:all_reduce", "all_reduce"),
        ("mpi:broadcast", "broadcast"),
        ("c10d::allreduce_", "all_reduce"),
        ("c10d::_reduce_scatter_base_", "reduce_scatter"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("c10d::send", "send"),
        ("gather", "gather"),
        ("scatter", "scatter"),
        ("nothing known", UNKNOWN_OP),
        ("", UNKNOWN_OP),
    ],
)
def test_op_of_a_collective_name(text: str, op: str) -> None:
    assert op_of_collective_name(text) == op


def test_patterns_stand_alone() -> None:
    """A flag at the head of one, a group that another has too, a reference to a group of its own."""
    classifier = Classifier(extra_patterns=("(?i)ring", r"^(?P<kind>ab)(?P=kind)", r"^(?P<kind>c)x\1$"))
    for name in ("my_RING", "abab_kernel", "cxc"):
        assert classifier.classify(Category.KERNEL, name) is EventClass.COMMUNICATION
    assert classifier.classify(Category.KERNEL, "cxab") is EventClass.COMPUTE


def test_only_the_head_of_an_endless_name_is_searched() -> None:
    """Where it is damage, it must not cost seconds; a name of some kilobytes is seen whole."""
    classifier = Classifier()
    assert classifier.classify(Category.KERNEL, "x" * 10_000 + "deep_ep::") is EventClass.COMMUNICATION
    assert classifier.classify(Category.KERNEL, "x" * 1_000_000 + "deep_ep::") is EventClass.COMPUTE

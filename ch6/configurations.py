"""Models, GPUs and published measurements that scale.py knows, each with its source."""

from dataclasses import dataclass

from alpha_beta import Link, Links, links_of, load
from scaling import BF16, Layout

from common.machine.device import datasheet


@dataclass(frozen=True)
class Gpu:
    """One GPU of a machine: bytes, bf16 FLOP/s that a training step reaches, bytes per second of DRAM, links."""

    memory: float
    flops: float
    dram: float
    links: Links


@dataclass(frozen=True)
class Model:
    """A transformer. gated: an MLP has three matrices, else two. tied: the embedding is the output layer, too."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    context: int
    source: str
    gated: bool = True
    tied: bool = False
    experts: int = 1
    active: int = 1

    @property
    def attention(self):
        """Parameters of one layer outside its MLPs: q and o, k and v. Biases, norms and routers are left out."""
        return 2 * self.hidden**2 * (1 + self.kv_heads / self.heads)

    @property
    def mlp(self):
        """Parameters of one MLP, or of one expert."""
        return (2 + self.gated) * self.hidden * self.ffn

    @property
    def table(self):
        """Parameters of the embedding; of the output layer, too."""
        return self.vocab * self.hidden

    @property
    def parameters(self):
        return self.layers * (self.attention + self.experts * self.mlp) + self.table * (2 - self.tied)

    def flops(self, sequence, recompute=False):
        """FLOPs a token: 6 for each parameter that it meets (2 forward, 4 backward), and 12 L h s of attention.

        With recompute the layers' forward pass is done twice. The masked half of attention counts, too. (Narayanan
        2021, equation 3; Chowdhery et al. 2022, PaLM, appendix B.)
        """
        layers = 6 * self.layers * (self.attention + self.active * self.mlp + 2 * self.hidden * sequence)
        return layers * (4 / 3 if recompute else 1) + 6 * self.table

    @property
    def kept(self):
        """Bytes that one layer keeps for backward, a token and hidden element: 34 for GPT-3.

        Korthikanti 2022, section 4.1, without attention's s x s matrices, as FlashAttention: bf16 inputs of two norms,
        of q, k and v, of o and of the MLP; q, k, v; what is between the MLP's matrices; two masks where there is
        dropout, which models with gated MLPs lack.
        """
        attention = 10 + 4 * self.kv_heads / self.heads + 2 * (not self.gated)
        return attention + self.active * BF16 * (1 + (2 + self.gated) * self.ffn / self.hidden)


GPT3 = "Brown et al. 2020, arXiv 2005.14165, table 2.1"
LLAMA3 = "Llama Team 2024, arXiv 2407.21783, table 3"
MODELS = {
    "gpt3-175b": Model(96, 12288, 96, 96, 49152, 50257, 2048, GPT3, gated=False, tied=True),
    "llama3-8b": Model(32, 4096, 32, 8, 14336, 128256, 8192, LLAMA3),
    "llama3-70b": Model(80, 8192, 64, 8, 28672, 128256, 8192, LLAMA3),
    "llama3-405b": Model(126, 16384, 128, 8, 53248, 128256, 8192, LLAMA3),
    "mixtral-8x7b": Model(
        32, 4096, 32, 8, 14336, 32000, 32768, "Jiang et al. 2024, arXiv 2401.04088, table 1", experts=8, active=2
    ),
}

DGX_A100, DGX_H100 = "NVIDIA DGX A100 datasheet", "NVIDIA DGX H100/H200 datasheet"
MACHINES = {  # name -> (key in common/machine/datasheets.json, bytes a GPU, bytes per second of its adapter, source)
    "a100": ("NVIDIA A100-SXM4-80GB", 80e9, 25e9, f"{DGX_A100}: 8 GPUs, a 200 Gb/s adapter each"),
    "h100": ("NVIDIA H100 80GB HBM3", 80e9, 50e9, f"{DGX_H100}: 8 GPUs, a 400 Gb/s adapter each"),
    "h200": ("NVIDIA H200", 141e9, 50e9, f"{DGX_H100}: 8 GPUs, a 400 Gb/s adapter each"),
    "b200": ("NVIDIA B200", 180e9, 50e9, "NVIDIA DGX B200 datasheet: 8 GPUs, a 400 Gb/s adapter each"),
}
GPUS_A_MACHINE = 8
ALPHAS = (3.4e-6, 14.0e-6)  # NVLink, network: hwLat
ALPHAS_SOURCE = "NCCL 2.20, src/graph/tuning.cc (ring, Simple protocol)"
SHARE = 0.55  # of the bf16 rate, with which the steps below come out as published (scale.py --check)


def gpu_of(machine, share, fit=None, fit_between=None):
    """(Gpu, what is assumed of it as texts): links from a datasheet, or from records of collectives.py.

    fit: paths of records, within a machine and between machines. Raises UserError.
    """
    key, memory, adapter, source = MACHINES[machine]
    peaks, sheet = datasheet(key)
    levels, said = [], [f"{machine}: {source}; {memory / 1e9:.0f} GB a GPU; {sheet}"]
    said += [f"computing: {share} of {peaks['bf16_flops'] / 1e12:.0f} TFLOP/s"]
    levels_given = zip(ALPHAS, (peaks["link_bytes"], adapter), (fit, fit_between), strict=True)
    for where, (alpha, beta, path) in zip(("within a machine", "between machines"), levels_given, strict=True):
        links, origin = {"send_recv": Link(alpha, beta)}, f"beta of the datasheet, alpha of {ALPHAS_SOURCE}"
        if path:
            record = load(path)
            links, made = links_of(record), f"{record.ranks} ranks, {record.backend}, {record.device}"
            origin = f"send_recv, fitted like each collective to {path} ({made})"
        one = links["send_recv"]
        said.append(f"links {where}: alpha {one.alpha * 1e6:.1f} us, beta {one.beta / 1e9:.2f} GB/s; {origin}")
        levels.append(links)
    return Gpu(memory, share * peaks["bf16_flops"], peaks["dram_bytes"], Links(GPUS_A_MACHINE, *levels)), said


@dataclass(frozen=True)
class Published:
    """A measured step: TFLOP/s a GPU, by `Model.flops` with recomputing counted where the layout recomputes."""

    source: str
    model: str
    machine: str
    gpus: int
    batch: int
    layout: Layout
    tflops: float


NARAYANAN, LLAMA_SCALE = "Narayanan 2021, table 2", "Llama Team 2024, table 4"
# Section 5.2: 96 ranks hold the model. How many chunks a stage has is not published: 1 here; 2 would halve the bubble.
THREE_D = Layout(tensor=8, pipeline=12, recompute=True)
# Section 3.3.2: a chunk is one of 126 + 2 layers; gradients are divided, too, and exchanged once a step, as here.
LLAMA_LAYOUT = Layout(tensor=8, pipeline=16, stage=1, chunks=8)
PUBLISHED = [
    Published(NARAYANAN, "gpt3-175b", "a100", 384, 1536, THREE_D, 153),
    Published(NARAYANAN, "gpt3-175b", "a100", 768, 1536, THREE_D, 149),
    Published(NARAYANAN, "gpt3-175b", "a100", 1536, 1536, THREE_D, 141),
    Published(NARAYANAN, "gpt3-175b", "a100", 384, 1536, Layout(stage=3, micro=4, recompute=True), 144),
    Published(NARAYANAN, "gpt3-175b", "a100", 768, 1536, Layout(stage=3, micro=2, recompute=True), 88),
    Published(NARAYANAN, "gpt3-175b", "a100", 1536, 1536, Layout(stage=3, micro=1, recompute=True), 44),
    Published(LLAMA_SCALE, "llama3-405b", "h100", 8192, 2048, LLAMA_LAYOUT, 430),
    Published(LLAMA_SCALE, "llama3-405b", "h100", 16384, 2048, LLAMA_LAYOUT, 400),
]

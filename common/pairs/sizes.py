"""The sizes of a pair: by name, by class (`large` of `large/8192x8192`), and their replacement on a CPU."""

from common.pairs.pair import Pair


def class_of(size: str) -> str:
    """The class of a size: `large` of `large/8192x8192`. `cpu` belongs to `default`, which it replaces on a CPU."""
    name = size.split("/")[0]
    return "default" if name == "cpu" else name


def sizes_of(pair: Pair, wanted: str, on_cpu: bool) -> list[str]:
    """A pair's sizes, in its own order, for one name or several (`default,large`)."""
    chosen = {size for name in wanted.split(",") for size in _sizes_named(pair.timed_sizes, name, on_cpu)}
    return [size for size in pair.timed_sizes if size in chosen]


def _sizes_named(timed: list[str], name: str, on_cpu: bool) -> list[str]:
    """`small` stands for `small/*` too, `all` for every size; on a CPU `default` may mean `cpu`."""
    elsewhere = "cpu" if not on_cpu else "default" if "cpu" in timed else ""
    if name == "all":
        return [size for size in timed if size != elsewhere]
    if name == elsewhere == "default":
        return ["cpu"]
    return [size for size in timed if size == name or size.startswith(f"{name}/")]


def pairs_without(pairs: list[Pair], size: str) -> list[str]:
    """The names of pairs without any of the requested sizes (`large`; `default,large`)."""
    wanted = {*size.split(",")}

    def has(pair: Pair) -> bool:
        return any(wanted & {size, size.split("/")[0]} for size in pair.timed_sizes)

    return [pair.name for pair in pairs if "all" not in wanted and not has(pair)]

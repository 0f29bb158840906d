"""The steps of a thread, and what they touch: lines of code by function of the machine, lines of data by place."""

import bisect
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import capstone
import numpy as np
from capstone import x86

LINE, PAGE = 6, 12  # bits of an address within them
_REGISTERS = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base"
_AT = {name: i for i, name in enumerate(_REGISTERS.split())}
_COUNT = 27  # of user_regs_struct, see <sys/user.h>
_EPOLL = (232, 281)


class Place:
    """A mapping of the process (proc(5), maps)."""

    def __init__(self, row: str) -> None:
        area, _, offset, _, _, *path = row.split(None, 5)
        self.begin, self.end = (int(word, 16) for word in area.split("-"))
        self.offset = int(offset, 16)
        self.path = path[0].strip() if path else "memory"


class Trace:
    """One request: from its beginning to the end of the next but one sleep of the loop."""

    def __init__(self, steps: Path, maps: str, codes: str) -> None:
        every = np.fromfile(steps, dtype=np.uint64)
        every = every[: len(every) // _COUNT * _COUNT].reshape(-1, _COUNT)
        call = every[:, _AT["orig_rax"]]
        sleeps = np.where(np.isin(call, _EPOLL) & (np.diff(call, prepend=call[:1]) != 0))[0]
        self.steps = every[sleeps[2] : sleeps[4]].astype(np.int64)  # the first is cut, the second warms up
        self.places = [Place(row) for row in maps.splitlines()]
        self.codes = sorted(
            (int(at), int(size), name) for at, size, name in (r.split("\t") for r in codes.splitlines())
        )
        self._symbols: dict[str, tuple[int, list[int], list[str]]] = {}
        self.instructions = self.steps[:, _AT["rip"]]
        self.when, self.where = self._operands()

    def place(self, at: int) -> Place | None:
        """The mapping that an address lies in."""
        return next((place for place in self.places if place.begin <= at < place.end), None)

    def symbol(self, at: int) -> str:
        """The function of the machine that an instruction belongs to, as far as its file tells."""
        place = self.place(at)
        if place is None or not place.path.startswith("/"):
            return "?"
        if place.path not in self._symbols:
            base = min(one.begin - one.offset for one in self.places if one.path == place.path)
            self._symbols[place.path] = base, *_defined(place.path)
        base, begins, names = self._symbols[place.path]
        i = bisect.bisect_right(begins, at - base) - 1
        return names[i] if i >= 0 else "?"

    def functions(self) -> list[tuple[int, str]]:
        """From which step on which Python function runs: its bytecode is being read."""
        found: list[tuple[int, str]] = []
        begins = [row[0] for row in self.codes]
        for step, at in zip(self.when.tolist(), self.where.tolist(), strict=True):
            i = bisect.bisect_right(begins, at) - 1
            if (
                i >= 0
                and 0xB0 <= at - begins[i] < self.codes[i][1]
                and (not found or found[-1][1] != self.codes[i][2])
            ):
                found.append((step, self.codes[i][2]))
        return found

    def _operands(self) -> tuple[np.ndarray, np.ndarray]:
        """Steps, and addresses of data that each reads or writes."""
        reader = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        reader.detail = True
        files = {
            place.path: Path(place.path).read_bytes() for place in self.places if Path(place.path).is_file()
        }
        steps: list[np.ndarray] = []
        addresses: list[np.ndarray] = []
        order = np.argsort(self.instructions, kind="stable")
        unique, begins = np.unique(self.instructions[order], return_index=True)
        for at, rows in zip(unique.tolist(), np.split(order, begins[1:]), strict=True):
            place = self.place(at)
            if place is None or place.path not in files:
                continue
            offset = at - place.begin + place.offset
            instruction = next(reader.disasm(files[place.path][offset : offset + 16], at), None)
            for address in () if instruction is None else self._touched(instruction, rows):
                steps.append(rows)
                addresses.append(address)
        when = np.concatenate(steps)
        order = np.argsort(when, kind="stable")
        return when[order], np.concatenate(addresses)[order]

    def _touched(self, instruction: capstone.CsInsn, rows: np.ndarray) -> list[np.ndarray]:
        registers = self.steps[rows]
        name = instruction.mnemonic
        if name in ("lea", "nop"):
            return []
        found = []
        if name.startswith(("push", "call")):
            found.append(registers[:, _AT["rsp"]] - 8)
        elif name.startswith(("pop", "ret")):
            found.append(registers[:, _AT["rsp"]])
        for operand in instruction.operands:
            if operand.type != x86.X86_OP_MEM:
                continue
            address = np.full(len(rows), operand.mem.disp, dtype=np.int64)
            for register, scale in ((operand.mem.base, 1), (operand.mem.index, operand.mem.scale)):
                word = instruction.reg_name(register) if register else ""
                if word == "rip":
                    address += instruction.address + instruction.size
                elif word in _AT:
                    address += registers[:, _AT[word]] * scale
            if operand.mem.segment == x86.X86_REG_FS:
                address += registers[:, _AT["fs_base"]]
            found.append(address)
        return found


def _defined(path: str) -> tuple[list[int], list[str]]:
    rows: set[tuple[int, str]] = set()
    for flags in ([], ["-D"]):
        listed = subprocess.run(
            ["nm", "--defined-only", *flags, path], capture_output=True, text=True, check=False
        ).stdout
        words = (row.split() for row in listed.splitlines())
        rows |= {(int(word[0], 16), word[2]) for word in words if len(word) == 3 and word[1] in "tTwWi"}
    ordered = sorted(rows)
    return [at for at, _ in ordered], [name for _, name in ordered]


def by_means(trace: Trace) -> list[tuple[int, str, str]]:
    """Lines of code of each function of the machine, and the Python functions that came to it most."""
    lines: dict[str, set[int]] = defaultdict(set)
    callers: dict[str, Counter[str]] = defaultdict(Counter)
    known: dict[int, str] = {}
    functions = trace.functions()
    begins = [step for step, _ in functions]
    before = ""
    for step, at in enumerate(trace.instructions.tolist()):
        name = known.get(at) or known.setdefault(at, trace.symbol(at))
        lines[name].add(at >> LINE)
        if name != before:
            i = bisect.bisect_right(begins, step) - 1
            callers[name][functions[i][1] if i >= 0 else "?"] += 1
            before = name
    rows = [
        (len(found), name, ", ".join(one for one, _ in callers[name].most_common(4)))
        for name, found in lines.items()
    ]
    return sorted(rows, reverse=True)

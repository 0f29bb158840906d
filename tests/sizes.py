"""No file of the package over 300 lines, no function over 50: prints what is, and fails."""

import ast
import sys
from pathlib import Path

LINES, FUNCTION_LINES = 300, 50
SOURCE = Path(__file__).parents[1] / "src"


def faults() -> list[str]:
    """One line per file or function that is too long."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        name = path.relative_to(SOURCE.parent)
        if (length := text.count("\n")) > LINES:
            found.append(f"{name}: {length} lines, at most {LINES}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size > FUNCTION_LINES:
                    found.append(
                        f"{name}:{node.lineno}: {node.name} has {size} lines, at most {FUNCTION_LINES}"
                    )
    return found


if __name__ == "__main__":
    if long := faults():
        sys.exit("\n".join(long))
    print("sizes: every file and function within its limit")

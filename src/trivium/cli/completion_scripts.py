"""Writes completions of a table of commands as scripts of bash, zsh and fish. Pure.

Paths are left to the shell, which knows how they are quoted. A name or a text of the table is never run: it stands
within single quotes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOP = ("--help", "--version")


@dataclass(frozen=True, slots=True)
class CompletedOption:
    """An option as it is completed: its flags, whether a value follows, the words that this may be, or that it is a
    path.
    """

    flags: tuple[str, ...]
    takes_value: bool = False
    words: tuple[str, ...] = ()
    is_path: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """A command as it is completed: what it does, its options, the words and whether paths may follow it."""

    name: str
    text: str
    options: tuple[CompletedOption, ...] = ()
    words: tuple[str, ...] = ()
    has_paths: bool = False


def quoted(text: str) -> str:
    """Return a text within single quotes, as bash and zsh read it."""
    return "'" + text.replace("'", "'\\''") + "'"


def fish_quoted(text: str) -> str:
    """Return a text within single quotes, as fish reads it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def bash(commands: Sequence[CompletedCommand]) -> str:
    """Return the script for bash."""
    cases = "\n".join(line for each in commands for line in _bash_case(each))
    top = " ".join([*(each.name for each in commands), *_TOP])
    return f"""# Completion of trivium for bash, made by `trivium completion bash`.
_trivium() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command= words= paths= i
    # bash takes --option=value apart, at the sign
    if [[ $cur == = ]]; then cur=
    elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${{COMP_WORDS[i]}} != -* ]]; then command=${{COMP_WORDS[i]}}; break; fi
    done
    case $command in
    '') words={quoted(top)} ;;
{cases}
    esac
    if [[ $paths && $cur != -* ]]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -W "$words" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    fi
}}
complete -F _trivium trivium
"""


def _bash_case(command: CompletedCommand) -> Iterator[str]:
    valued = [each for each in command.options if each.takes_value]
    yield f"    {command.name})"
    yield "        case $prev in"
    for each in valued:
        if each.words:
            yield f"        {'|'.join(each.flags)}) words={quoted(' '.join(each.words))} ;;"
    yield from _bash_flags([each for each in valued if each.is_path], "paths=1")
    yield from _bash_flags([each for each in valued if not (each.is_path or each.words)], ":")
    flags = " ".join(flag for each in command.options for flag in each.flags)
    after = quoted(" ".join(command.words if command.has_paths else (*command.words, flags)))
    paths = "paths=1; " if command.has_paths else ""
    yield f"        *) {paths}if [[ $cur == -* ]]; then words={quoted(flags)}; else words={after}; fi ;;"
    yield "        esac ;;"


def _bash_flags(options: Sequence[CompletedOption], then: str) -> Iterator[str]:
    if options:
        yield f"        {'|'.join(flag for each in options for flag in each.flags)}) {then} ;;"


def zsh(commands: Sequence[CompletedCommand]) -> str:
    """Return the script for zsh."""
    cases = "\n".join(line for each in commands for line in _zsh_case(each))
    rows = "\n".join(f"        {quoted(f'{each.name}:{_line(each.text)}')}" for each in commands)
    return f"""#compdef trivium
# Completion of trivium for zsh, made by `trivium completion zsh`.
_trivium() {{
    local context state state_descr line
    typeset -A opt_args
    _arguments -C '(-h --help)'{{-h,--help}}'[Show what there is.]' '--version[Show the version.]' \\
        '1:command:->command' '*::argument:->argument'
    case $state in
    command)
        local -a commands
        commands=(
{rows}
        )
        _describe -t commands 'trivium command' commands ;;
    argument)
        case $line[1] in
{cases}
        esac ;;
    esac
}}
if [[ $funcstack[1] == _trivium ]]; then _trivium "$@"; else compdef _trivium trivium; fi
"""


def _zsh_case(command: CompletedCommand) -> Iterator[str]:
    yield f"        {command.name})"
    yield "            _arguments \\"
    for each in command.options:
        others = f"({' '.join(each.flags)})" if len(each.flags) > 1 else ""
        for flag in each.flags:
            sign = "=" if each.takes_value and flag.startswith("--") else ""
            yield f"                {quoted(f'{others}{flag}{sign}[{_zsh(_line(each.text))}]{_zsh_value(each)}')} \\"
    if command.words:
        yield f"                {quoted('1:word:(' + ' '.join(command.words) + ')')} \\"
    rest = "*:path:_files" if command.has_paths else "*: :"
    yield f"                {quoted(rest)} ;;"


def _zsh_value(option: CompletedOption) -> str:
    if not option.takes_value:
        return ""
    words = f"({' '.join(option.words)})" if option.words else "_files" if option.is_path else " "
    return f":value:{words}"


def _zsh(text: str) -> str:
    """Return a description without what has a meaning in a specification."""
    return "".join(f"\\{letter}" if letter in "[]:\\" else letter for letter in text)


def fish(commands: Sequence[CompletedCommand]) -> str:
    """Return the script for fish."""
    lines = ["# Completion of trivium for fish, made by `trivium completion fish`.", "complete -c trivium -f"]
    lines += (
        f"complete -c trivium -n __fish_use_subcommand -a {each.name} -d {fish_quoted(_line(each.text))}"
        for each in commands
    )
    lines += (
        "complete -c trivium -n __fish_use_subcommand -s h -l help -d 'Show what there is.'",
        "complete -c trivium -n __fish_use_subcommand -l version -d 'Show the version.'",
    )
    for command in commands:
        there = f"complete -c trivium -n {fish_quoted(f'__fish_seen_subcommand_from {command.name}')}"
        if command.words:
            lines.append(f"{there} -a {fish_quoted(' '.join(command.words))}")
        if command.has_paths:
            lines.append(f"{there} -F")
        lines += (f"{there}{_fish_option(each)}" for each in command.options)
    return "\n".join(lines) + "\n"


def _fish_option(option: CompletedOption) -> str:
    flags = "".join(
        f" -l {each[2:]}"
        if each.startswith("--")
        else f" -s {each[1:]}"
        if len(each) == 2
        else f" -o {each[1:]}"
        for each in option.flags
    )
    value = ""
    if option.takes_value:
        value = (
            f" -x -a {fish_quoted(' '.join(option.words))}"
            if option.words
            else " -r -F"
            if option.is_path
            else " -x"
        )
    return f"{flags}{value} -d {fish_quoted(_line(option.text))}"


def _line(text: str) -> str:
    """Return the first sentence of a text, as one line."""
    words = " ".join(text.split())
    return words.partition(". ")[0].rstrip(".")

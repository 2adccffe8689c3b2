"""Makes the completion scripts for shells from what the commands declare: options, their values, and other words.

Pure, except for :func:`described`.
"""

import shlex
from argparse import Action
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tfmemtop.commands import DEFAULT, NAMES
from tfmemtop.commands.parser import Trailing, parser_of
from tfmemtop.help import topics

_KINDS: dict[str, "Kind"] = {
    **dict.fromkeys(("FILE", "A", "B", "OUT", "RANK"), "file"),
    "COMMAND": "program",
    "RUN": "session",
}
"""The kind of word in a place, by the name of the place in the usage."""
_RUNNING = "tfmemtop ls 2>/dev/null | awk '$NF == \"running\" { print $1 }'"
"""A shell command that prints the names of the sessions that are running."""
_ONCE = "--once"

Kind = Literal["file", "program", "session", "other"]


@dataclass(frozen=True, slots=True)
class Values:
    """What may stand in a place: one of *words*, a name of a *kind* that the shell can complete, or something else."""

    words: tuple[str, ...] = ()
    kind: "Kind" = "other"
    name: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """An option with all its spellings; *values* is ``None`` if it takes none."""

    flags: tuple[str, ...]
    help: str
    values: Values | None


@dataclass(frozen=True, slots=True)
class Command:
    """A command; *name* is empty for the default command. *trailing*: a command line may follow ``--``."""

    name: str
    summary: str
    options: tuple[Option, ...]
    places: tuple[Values, ...]
    trailing: bool


def described() -> list[Command]:
    """Return all commands as they are declared. The first has no name, and ``--once`` is one of its options."""
    found = []
    for name in NAMES:
        parser = parser_of(name)
        actions = parser._actions
        options = tuple(
            Option(tuple(action.option_strings), action.help or "", None if action.nargs == 0 else _values(action))
            for action in actions
            if action.option_strings
        )
        places = tuple(_values(action) for action in actions if not action.option_strings)
        trailing = parser.trailing is not Trailing.NONE
        found.append(Command("" if name == DEFAULT else name, parser.page.summary, options, places, trailing))
    once = next(command for command in found if command.name == "once")
    plain = found[0]
    own = {flag for option in plain.options for flag in option.flags}
    added = [option for option in once.options if not own & set(option.flags)]
    whole = Command("", "", (*plain.options, Option((_ONCE,), once.summary, None), *added), (), True)
    return [whole, *(command for command in found[1:] if command is not once)]


def _values(action: Action) -> Values:
    name = str(action.metavar or action.dest)
    if action.choices:
        return Values(words=tuple(map(str, action.choices)), name=name)
    if name == "TOPIC":
        return Values(words=(*topics(), *(name for name in NAMES if name != DEFAULT)), name=name)
    return Values(kind=_KINDS.get(name, "other"), name=name)


def bash(commands: Sequence[Command]) -> str:
    """Return the script for bash 4.1 and newer."""
    named = [command.name for command in commands if command.name]
    taking = sorted({flag for c in commands for o in c.options if o.values is not None for flag in o.flags})
    cases = []
    for command in commands:
        flags = [flag for option in command.options for flag in option.flags]
        places = [_bash_place(place) for place in command.places] or ["none"]
        cases.append(
            f"    {_case(command.name)})\n"
            f"      flags={shlex.quote(' '.join(flags))}\n"
            f"      places=({' '.join(shlex.quote(place) for place in places)}) ;;"
        )
    by_values: dict[str, list[str]] = {}
    for command in commands:
        for option in command.options:
            if option.values is not None:
                known = by_values.setdefault(_bash_place(option.values), [])
                known += [flag for flag in option.flags if flag not in known]
    values = [f"    {'|'.join(flags)}) place={shlex.quote(place)} ;;" for place, flags in by_values.items()]
    return _BASH.format(
        named="|".join(named),
        commands=" ".join(named),
        taking="|".join(taking),
        cases="\n".join(cases),
        values="\n".join(values),
        running=_RUNNING,
    )


def _case(name: str) -> str:
    return name or "''"


def _bash_place(values: Values) -> str:
    return "words " + " ".join(values.words) if values.words else values.kind


_BASH = """\
# Completion of tfmemtop for bash: eval "$(tfmemtop completion bash)"
_tfmemtop() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} before='' command='' flags='' place='' given=0 i word
  local -a places=()
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    before=$word
    case $word in
    --)
      _tfmemtop_program $((i + 1))
      return ;;
    {taking})
      [[ ${{COMP_WORDS[i + 1]}} == '=' ]] && ((i++))
      ((i++)) ;;
    -*) ;;
    {named})
      if [[ -z $command ]]; then command=$word; else ((given++)); fi ;;
    *) ((given++)) ;;
    esac
  done
  case $command in
{cases}
  esac
  # The value of an option, if the word before is one that takes a value.
  if ((i > COMP_CWORD)); then
    [[ $cur == '=' ]] && cur=''
    case $before in
{values}
    esac
  elif [[ $cur == -* ]]; then
    place="words $flags"
  elif [[ -z $command ]]; then
    place="words {commands}"
  else
    place=${{places[given]-none}}
  fi
  case $place in
  words*) COMPREPLY=($(compgen -W "${{place#words }}" -- "$cur")) ;;
  file) compopt -o default ;;
  program) COMPREPLY=($(compgen -c -- "$cur")) ;;
  session) COMPREPLY=($(compgen -W "$({running})" -- "$cur")) ;;
  esac
}}
_tfmemtop_program() {{
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "$1"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    COMPREPLY=($(compgen -c -- "${{COMP_WORDS[COMP_CWORD]}}"))
  else
    compopt -o default
  fi
}}
complete -F _tfmemtop tfmemtop
"""


def zsh(commands: Sequence[Command]) -> str:
    """Return the script for zsh's own completion system."""
    named = [command for command in commands if command.name]
    taking = sorted({flag for c in commands for o in c.options if o.values is not None for flag in o.flags})
    cases = []
    for command in commands:
        specs = [spec for option in command.options for spec in _zsh_option(option)]
        if command.name:
            specs += [f":{_zsh_text(place.name)}:{_zsh_action(place)}" for place in command.places]
        else:
            choices = " ".join(f"{one.name}\\:{shlex.quote(_zsh_text(one.summary))}" for one in named)
            specs.append(f":command:(({choices}))")
        body = " \\\n      ".join(shlex.quote(spec) for spec in specs)
        cases.append(f"  {_case(command.name)})\n    _arguments -S \\\n      {body} ;;")
    return _ZSH.format(
        named="|".join(command.name for command in named), taking="|".join(taking), cases="\n".join(cases)
    )


def _zsh_option(option: Option) -> list[str]:
    value = "" if option.values is None else f":{_zsh_text(option.values.name)}:{_zsh_action(option.values)}"
    excluded = f"({' '.join(option.flags)})" if len(option.flags) > 1 else ""
    return [f"{excluded}{flag}[{_zsh_text(option.help)}]{value}" for flag in option.flags]


def _zsh_action(values: Values) -> str:
    if values.words:
        return f"({' '.join(values.words)})"
    session = f"{{compadd -- $({_RUNNING})}}"
    return {"file": "_files", "program": "_command_names -e", "session": session, "other": " "}[values.kind]


def _zsh_text(text: str) -> str:
    for character in "\\:[]":
        text = text.replace(character, "\\" + character)
    return text


_ZSH = """\
#compdef tfmemtop
# Completion of tfmemtop for zsh, after compinit: eval "$(tfmemtop completion zsh)"
_tfmemtop() {{
  local command= i
  for ((i = 2; i < CURRENT; i++)); do
    case $words[i] in
    --)
      shift $i words
      ((CURRENT -= i))
      _normal
      return ;;
    {taking}) ((i++)) ;;
    {named})
      if [[ -z $command ]]; then
        command=$words[i]
        words[i]=()
        ((CURRENT--, i--))
      fi ;;
    esac
  done
  case $command in
{cases}
  esac
}}
if [[ $funcstack[1] == _tfmemtop ]]; then _tfmemtop "$@"; else compdef _tfmemtop tfmemtop; fi
"""


def fish(commands: Sequence[Command]) -> str:
    """Return the script for fish 3.0 and newer."""
    named = [command for command in commands if command.name]
    taking = sorted({flag for c in commands for o in c.options if o.values is not None for flag in o.flags})
    lines = []
    for command in commands:
        when = f"-n {shlex.quote(f'__tfmemtop_in {command.name or _NO_COMMAND}')}"
        for option in command.options:
            long = [f"-l {flag[2:]}" for flag in option.flags if flag.startswith("--")]
            short = [f"-s {flag[1:]}" for flag in option.flags if not flag.startswith("--")]
            value = "" if option.values is None else _fish_values(option.values, "-r", "-x")
            lines.append(f"complete -c tfmemtop {when} {' '.join(short + long)}{value} -d {_fish_text(option.help)}")
        if not command.name:
            lines += [f"complete -c tfmemtop {when} -a {one.name} -d {_fish_text(one.summary)}" for one in named]
        for place in dict.fromkeys(command.places):
            lines.append(f"complete -c tfmemtop {when}{_fish_values(place, '', '')}")
    return _FISH.format(
        named=" ".join(command.name for command in named), taking=" ".join(taking), lines="\n".join(lines)
    )


_NO_COMMAND = "none"


def _fish_values(values: Values, with_files: str, without: str) -> str:
    """Return fish's arguments for *values*. *with_files* or *without* comes first: files are, or are not, completed."""
    if values.words:
        return f" {without} -a {shlex.quote(' '.join(values.words))}"
    return {
        "file": f" {with_files} -F",
        "program": f" {without} -a '(__fish_complete_command)'",
        "session": f" {without} -a {_fish_text(f'({_RUNNING})')}",
        "other": f" {without}",
    }[values.kind]


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_FISH = """\
# Completion of tfmemtop for fish: tfmemtop completion fish | source
function __tfmemtop_in
    set -l words (commandline -opc)
    contains -- -- $words; and return 1
    set -l command none
    set -l skip 0
    for word in $words[2..-1]
        if test $skip = 1
            set skip 0
        else if contains -- $word {taking}
            set skip 1
        else if contains -- $word {named}
            set command $word
            break
        end
    end
    test $command = $argv[1]
end
function __tfmemtop_program
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words); or return 1
    complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end
complete -c tfmemtop -e
complete -c tfmemtop -f
complete -c tfmemtop -n 'contains -- -- (commandline -opc)' -a '(__tfmemtop_program)'
{lines}
"""

SCRIPTS: dict[str, Callable[[Sequence[Command]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""The function that makes the script, by the shell's name."""

"""Print the script that makes a shell complete tfmemtop's command line.

usage: tfmemtop completion SHELL
example: tfmemtop completion bash

SHELL is bash, zsh, fish or tcsh. To have it always, put this into your shell's start file:
  ~/.bashrc                   eval "$(tfmemtop completion bash)"
  ~/.zshrc, after compinit    eval "$(tfmemtop completion zsh)"
  ~/.config/fish/config.fish  tfmemtop completion fish | source
  ~/.tcshrc                   tfmemtop completion tcsh >~/.tfmemtop.tcsh; source ~/.tfmemtop.tcsh
"""

from tfmemtop.cli import NAMES
from tfmemtop.cli.output import print_lines
from tfmemtop.cli.parser import BaseArguments, argument, parsers
from tfmemtop.help import topics

_SESSIONS = "tfmemtop ls 2>/dev/null | awk '$NF == \"running\" { print $1 }'"
"""A shell command that prints the names of the sessions that are running."""
_AFTER_DASHES = {
    "bash": r"""
_tfmemtop() {
  local i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      COMPREPLY=()
      if declare -F _command_offset >/dev/null; then
        _command_offset $((i + 1))
      elif ((COMP_CWORD == i + 1)); then
        COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
      else
        compopt -o default
      fi
      return
    fi
  done
  _shtab_tfmemtop
}
complete -o bashdefault -F _tfmemtop tfmemtop
""",
    "zsh": r"""
_tfmemtop() {
  local -i i=${words[(i)--]}
  if ((i < CURRENT)); then
    shift $i words
    ((CURRENT -= i))
    _normal
  else
    _shtab_tfmemtop
  fi
}
compdef _tfmemtop tfmemtop
""",
    "fish": r"""
function _tfmemtop_program
  set -l words (commandline -opc)
  set -l at (contains -i -- -- $words); or return 1
  complete -C (string join ' ' -- (string escape -- $words[(math $at + 1)..-1]) (commandline -ct))
end
complete -c tfmemtop -n 'contains -- -- (commandline -opc)' -a '(_tfmemtop_program)'
""",
}
"""By shell: completes the user's own command line."""


class CompletionArguments(BaseArguments):
    """``shell`` is the shell's name."""

    shell: str = argument("SHELL", "bash, zsh, fish or tcsh", needed=True, choices=("bash", "zsh", "fish", "tcsh"))


ARGUMENTS = CompletionArguments


def run(arguments: CompletionArguments) -> int:
    """Print the script; return 0."""
    import shtab

    known = parsers()
    places = {
        **dict.fromkeys(("FILE", "A", "B", "OUT", "RANK"), shtab.FILE),
        "FOLDER": shtab.DIRECTORY,
        "RUN": {
            "bash": "_tfmemtop_sessions",
            "zsh": "_tfmemtop_sessions",
            "fish": "(_tfmemtop_sessions)",
            "preamble": {
                "bash": f'_tfmemtop_sessions() {{ compgen -W "$({_SESSIONS})" -- "$1"; }}',
                "zsh": f"_tfmemtop_sessions() {{ compadd -- $({_SESSIONS}); }}",
                "fish": f"function _tfmemtop_sessions; {_SESSIONS}; end",
            },
        },
    }
    for action in (action for parser in known.values() for action in parser.load()._actions):
        if action.metavar == "TOPIC":
            action.choices = [*topics(), *NAMES]
        elif action.metavar in places:
            action.complete = places[action.metavar]  # type: ignore[attr-defined]
    script = shtab.complete(known["tfmemtop"], arguments.shell) + _AFTER_DASHES.get(arguments.shell, "")
    print_lines(script.splitlines())
    return 0

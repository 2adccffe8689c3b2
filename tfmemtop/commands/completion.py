"""Print the script that makes a shell complete tfmemtop's command line.

usage: tfmemtop completion SHELL
example: tfmemtop completion bash

SHELL is bash, zsh or fish. To have it always, put this into your shell's start file:
  ~/.bashrc                   eval "$(tfmemtop completion bash)"
  ~/.zshrc, after compinit    eval "$(tfmemtop completion zsh)"
  ~/.config/fish/config.fish  tfmemtop completion fish | source
"""

from tfmemtop.commands.parser import Arguments as Parsed
from tfmemtop.commands.parser import Parser
from tfmemtop.commands.saying import tell


class Arguments(Parsed):
    """``shell`` is the shell's name."""

    shell: str


def declare(parser: Parser) -> None:
    """Declare the shell."""
    parser.arguments = Arguments
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def run(arguments: Arguments) -> int:
    """Print the script; return 0."""
    from tfmemtop.commands.shells import SCRIPTS, described

    tell(SCRIPTS[arguments.shell](described()).splitlines())
    return 0

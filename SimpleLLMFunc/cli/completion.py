"""`simplellmfunc completion`: the script that lets a shell complete the commands and their options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_PROGRAM = "simplellmfunc"

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' i last=-1 prefix="" response completion type value
    local -a words=()
    # Bash cuts words at colons, and MODULE:FUNCTION is one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        if ((last > 0)) && [[ ${COMP_WORDS[i]} == :* || ${words[last]} == *: ]]; then
            words[last]+=${COMP_WORDS[i]}
        else
            words[++last]=${COMP_WORDS[i]}
        fi
    done
    # The line already has the part before the last colon.
    [[ $COMP_WORDBREAKS == *:* && ${words[last]} == *:* ]] && prefix=${words[last]%%:*}:
    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$last %(complete_var)s=bash_complete $1)
    for completion in $response; do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain) COMPREPLY+=("${value#"$prefix"}") ;;
        esac
    done
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which SHELL completes commands, options, files and the functions of a module.

    \b
    eval "$(simplellmfunc completion bash)"                                   # in ~/.bashrc
    eval "$(simplellmfunc completion zsh)"                                    # in ~/.zshrc
    simplellmfunc completion fish > ~/.config/fish/completions/simplellmfunc.fish
    """  # noqa: D301 - click reads the character itself
    made = get_completion_class(shell)
    assert made is not None, "click knows the three"
    # Without `source()`, which runs bash to ask for its version.
    script = made(ctx.find_root().command, {}, _PROGRAM, "_SIMPLELLMFUNC_COMPLETE")
    click.echo((_BASH if shell == "bash" else script.source_template) % script.source_vars())

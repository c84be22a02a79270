%(complete_func)s() {
    local IFS=$'\n' i last=-1 prefix="" response completion type value
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

# bash completion of weir, written by `weir completions bash`.
# Each word is asked of weir itself, so that names come from the running router.
_weir() {
    local line current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            $'\tfiles')
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
                ;;
            $'\tfolders')
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -d -- "$current")
                ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]/#\~/$HOME}" complete bash --line="${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -F _weir weir

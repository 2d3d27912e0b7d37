#compdef weir
# zsh completion of weir, written by `weir completions zsh`.
# Each word is asked of weir itself, so that names come from the running router.
_weir() {
    local line program=${(Q)words[1]}
    local -a described
    program=${program/#\~/$HOME}
    while IFS= read -r line; do
        case $line in
            $'\tfiles')
                _files
                return
                ;;
            $'\tfolders')
                _files -/
                return
                ;;
            *) described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done < <("$program" complete zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    _describe -t words weir described
}
if [[ ${funcstack[1]} == _weir ]]; then
    _weir "$@"
else
    compdef _weir weir
fi

# fish completion of weir, written by `weir completions fish`.
# Each word is asked of weir itself, so that names come from the running router.
function __weir_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -e words[1]
    for line in ($program complete fish -- $words "$word" 2>/dev/null)
        switch $line
            case \tfiles
                __fish_complete_path "$word"
            case \tfolders
                __fish_complete_directories "$word"
            case '*'
                echo $line
        end
    end
end
complete -c weir -f -a '(__weir_complete)'

# Completion of uwf for fish. Install it once:
#   uwf completion fish > ~/.config/fish/completions/uwf.fish
function __uwf_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c uwf -f -a '(__uwf_complete)'

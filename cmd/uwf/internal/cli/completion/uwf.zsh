#compdef uwf
# Completion of uwf for zsh. Load it in ~/.zshrc, behind compinit:
#   source <(uwf completion zsh)
_uwf() {
  local line word help files=
  local -a found
  while IFS= read -r line; do
    if [[ "$line" == ":files" ]]; then
      files=yes
      continue
    fi
    word="${line%%$'\t'*}"
    help="${line#*$'\t'}"
    found+=("${word//:/\\:}:$help")
  done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  local status_of=1
  if (( ${#found} )); then _describe 'uwf' found && status_of=0; fi
  if [[ -n "$files" ]]; then _files && status_of=0; fi
  return status_of
}
compdef _uwf uwf

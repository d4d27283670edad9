# Completion of uwf for bash. Load it in ~/.bashrc:
#   source <(uwf completion bash)
# The words are taken from the line, since bash splits them at '@' and '='.
_uwf() {
  local line="${COMP_LINE:0:COMP_POINT}" found typed fragment
  local -a words
  read -ra words <<<"$line"
  if [[ "$line" == *[[:space:]] ]]; then words+=(""); fi
  typed="${words[${#words[@]} - 1]}"
  fragment="${COMP_WORDS[COMP_CWORD]}"
  if [[ "$fragment" == [@=:] ]]; then fragment=""; fi
  COMPREPLY=()
  while IFS= read -r found; do
    found="${found%%$'\t'*}"
    if [[ "$found" == ":files" ]]; then
      compopt -o default
    else
      # Quoted: what stands on the line after TAB must be one word, and nothing that bash runs.
      printf -v found '%q' "${found#"${typed%"$fragment"}"}"
      COMPREPLY+=("$found")
    fi
  done < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
}
complete -F _uwf uwf

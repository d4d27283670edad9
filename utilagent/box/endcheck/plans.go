package endcheck

import (
	"bytes"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// plans are the files of a git directory that say what an unfinished rebase or cherry-pick does next.
func plans() []string {
	return []string{
		"rebase-merge/git-rebase-todo", "rebase-merge/git-rebase-todo.backup", "rebase-merge/done", "rebase-merge/strategy", "rebase-merge/strategy_opts",
		"rebase-apply/git-rebase-todo", "rebase-apply/git-rebase-todo.backup", "rebase-apply/done", "sequencer/todo", "sequencer/opts",
	}
}

// strategyName is the name of a merge strategy of git's own: git starts the program git-merge-NAME.
var (
	strategyName = lazyregexp.New(`^[a-z-]*$`)
	strategyLine = lazyregexp.New(`(?i)^[ \t]*strategy[ \t]*=[ \t]*"?[a-z-]*"?[ \t]*$`)
)

// isTodo reports whether a plan is a list of commands.
func isTodo(name string) bool {
	return !strings.Contains(name, "strategy") && !strings.HasSuffix(name, "/opts")
}

// runs reports whether git starts a program for a line of a plan.
func runs(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	for _, command := range []string{"exec", "x"} {
		if rest, ok := bytes.CutPrefix(line, []byte(command)); ok && len(rest) > 0 && strings.IndexByte(" \t\r\n", rest[0]) >= 0 {
			return true
		}
	}
	return false
}

// tame returns a plan without the lines that start programs and were not there before: of a list its exec lines,
// of other files the name of a strategy that is none of git's.
func tame(name string, text []byte, known map[string]bool) (kept []byte) {
	for line := range bytes.Lines(text) {
		word := bytes.TrimSpace(line)
		starts := runs(line)
		switch {
		case strings.HasSuffix(name, "/strategy"):
			starts = !strategyName().Match(word)
		case strings.HasSuffix(name, "/opts"):
			key, _, _ := bytes.Cut(word, []byte("="))
			starts = bytes.Contains(bytes.ToLower(word), []byte("strategy")) && !strategyLine().Match(word) &&
				!bytes.EqualFold(bytes.TrimSpace(key), []byte("strategy-option"))
		case !isTodo(name):
			starts = false
		}
		if !starts || known[string(word)] {
			kept = append(kept, line...)
		}
	}
	return kept
}

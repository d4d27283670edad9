package offlimits

import (
	"bytes"
	"io/fs"
	"path"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/lazyregexp"
)

// isPlan reports whether a file of an unfinished rebase or cherry-pick says what git
// runs when it goes on.
func isPlan(name string) bool {
	switch name {
	case "git-rebase-todo", "git-rebase-todo.backup", "todo", "strategy", "opts":
		return true
	}
	return false
}

var (
	runsLine     = lazyregexp.New(`^[ \t]*(exec|x)[ \t]`)
	strategyName = lazyregexp.New(`^[a-z-]*\n?$`)
	strategyLine = lazyregexp.New(`(?i)strategy[ \t]*=[ \t]*(.*)`)
)

// fixPlan takes out of a plan what it did not say before and would run. That a
// plan is gone, or shorter, is how git works.
func (k *keeper) fixPlan(name string, info fs.FileInfo, was *node) error {
	switch {
	case info.IsDir() && (was == nil || was.Mode.IsDir()):
		if was == nil {
			was = &node{Scope: plans}
		}
		return k.fixDir(name, was)
	case !info.Mode().IsRegular():
		return k.remove(name)
	}
	text, err := careful.ReadFileIn(k.root, name, maxFileBytes)
	if err != nil {
		return k.remove(name)
	}
	var before []byte
	if was != nil {
		before = was.Content
	}
	if bytes.Equal(text, before) {
		return nil
	}
	switch path.Base(name) {
	case "strategy": // of the program git-merge-…
		if !strategyName().Match(text) {
			return k.remove(name)
		}
		return nil
	case "opts":
		for _, m := range strategyLine().FindAllSubmatch(text, -1) {
			if !strategyName().Match(m[1]) {
				return k.remove(name)
			}
		}
		return nil
	}
	known := map[string]bool{}
	for line := range bytes.Lines(before) {
		known[string(bytes.TrimSpace(line))] = true
	}
	var kept []byte
	for line := range bytes.Lines(text) {
		if !runsLine().Match(line) || known[string(bytes.TrimSpace(line))] {
			kept = append(kept, line...)
		}
	}
	return k.rewrite(name, info, plans, text, kept, info.Mode().Perm())
}

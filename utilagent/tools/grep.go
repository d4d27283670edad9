package tools

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a search in files.
const (
	defaultMatches = 100
	maxMatches     = 1000
	maxCounted     = 10_000 // matches; then a search ends
	maxContext     = 5
	maxGrepBytes   = 10 << 20 // of a file; larger ones are left out
	maxShownLine   = 300
)

// Grep is the tool grep.
func Grep(w *Workspace, s Search) Tool {
	return New(Spec{
		Name:    "grep",
		Aliases: []string{"search_files", "grep_search"},
		Description: "Search the lines of the workspace's text files for a regular expression (RE2). Shows path:line: text, sorted by path. " +
			"Files that .gitignore excludes, and node_modules, are left out.",
		Parameters: object([]string{"pattern"}, map[string]any{
			"pattern":     property("string", `Regular expression, such as func\s+\w+Handler or foo|bar`),
			"path":        property("string", "Directory or file to search, relative to the working directory (default: the working directory)"),
			"glob":        property("string", "Only files whose names match, such as *.go or src/**/*.ts"),
			"ignore_case": property("boolean", "Case does not matter (default false)"),
			"context":     property("integer", fmt.Sprintf("Lines to show around each match (default 0, at most %d)", maxContext)),
			"files_only":  property("boolean", "Show only the names of the files (default false)"),
			"limit":       property("integer", fmt.Sprintf("How many matches to show (default %d, at most %d)", defaultMatches, maxMatches)),
		}),
		Effect: Reads, SideBySide: true,
	}, func(ctx context.Context, a grepArgs) (string, error) { return w.grep(ctx, s, a) })
}

type grepArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Fold    bool   `json:"ignore_case"`
	Context int    `json:"context"`
	Files   bool   `json:"files_only"`
	Limit   int    `json:"limit"`
}

func (w *Workspace) grep(ctx context.Context, s Search, a grepArgs) (string, error) {
	p, err := parsePattern(a.Pattern, a.Fold)
	if err != nil {
		return "", err
	}
	w = w.reading(a.Path)
	names, all, err := w.grepFiles(ctx, s, a)
	if err != nil {
		return "", err
	}
	g := grep{
		w: w, p: p, limit: bound(a.Limit, defaultMatches, maxMatches),
		around: min(max(a.Context, 0), maxContext), filesOnly: a.Files,
	}
	if err := g.run(ctx, names); err != nil {
		return "", err
	}
	return p.note + g.text() + g.footer(a) + walkedAll(all), nil
}

// grepFiles are the files to look at, sorted.
func (w *Workspace) grepFiles(ctx context.Context, s Search, a grepArgs) (names []string, all bool, err error) {
	dir, err := w.searchDir(a.Path)
	if isFile(err) {
		local, err := w.resolve(a.Path)
		return []string{filepath.ToSlash(local)}, true, err
	}
	if err != nil {
		return nil, false, err
	}
	names, all, err = finder{w, s}.files(ctx, dir)
	if err != nil || a.Glob == "" {
		return names, all, err
	}
	matches, err := w.parseGlob(a.Glob, dir)
	return slices.DeleteFunc(names, func(n string) bool { return err != nil || !matches(n) }), all, err
}

// footer says what is not shown, and what may be wrong when nothing is.
func (g *grep) footer(a grepArgs) string {
	var b strings.Builder
	switch total := g.total.Load(); {
	case total == 0:
		b.WriteString(nothing(a))
	case total >= maxCounted:
		fmt.Fprintf(&b, "[%d of more than %d matches shown; use a narrower pattern, path or glob]\n", g.shown, maxCounted)
	case !a.Files && int(total) > g.shown:
		fmt.Fprintf(&b, "[%d of %d matches shown; use a narrower pattern, path or glob]\n", g.shown, total)
	case a.Files && g.files > g.shown:
		fmt.Fprintf(&b, "[%d of %d files shown; use a narrower pattern, path or glob]\n", g.shown, g.files)
	}
	if n := g.large.Load(); n > 0 {
		fmt.Fprintf(&b, "[%d files over %d MB were not searched]\n", n, maxGrepBytes>>20)
	}
	if n := g.unread.Load(); n > 0 {
		fmt.Fprintf(&b, "[%d files could not be read]\n", n)
	}
	return b.String()
}

// nothing is the answer when there is no match.
func nothing(a grepArgs) string {
	hint := "Try a shorter pattern or ignore_case; files in node_modules and those that .gitignore excludes are only searched if path names their directory."
	switch {
	case strings.Contains(a.Pattern, `\|`):
		hint = `In this syntax "or" is |; \| is the character itself.`
	case strings.Contains(a.Pattern, `\n`) || strings.Contains(a.Pattern, "\n"):
		hint = "A match lies within one line: search for one line of it."
	}
	return "No match. " + hint + "\n"
}

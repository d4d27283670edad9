package tools

import (
	"context"
	"errors"
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
	names, rest, err := w.grepFiles(ctx, s, a, p)
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
	more, all, err := rest()
	if err != nil {
		return "", err
	}
	more = slices.DeleteFunc(more, func(n string) bool { _, known := slices.BinarySearch(names, n); return known })
	if err := g.run(ctx, more); err != nil {
		return "", err
	}
	return p.note + g.text() + g.footer(a) + walkedAll(all), nil
}

// grepFiles are the files that may have matches, in two parts as [finder.begin]
// gives them.
func (w *Workspace) grepFiles(ctx context.Context, s Search, a grepArgs, p pattern) (names []string, rest finding, err error) {
	none := func() ([]string, bool, error) { return nil, true, nil }
	dir, err := w.searchDir(a.Path)
	if isFile(err) {
		local, err := w.resolve(a.Path)
		return []string{filepath.ToSlash(local)}, none, err
	}
	if err != nil {
		return nil, nil, err
	}
	other := func(string) bool { return false }
	if a.Glob != "" {
		matches, err := w.parseGlob(a.Glob, dir)
		if err != nil {
			return nil, nil, err
		}
		other = func(n string) bool { return !matches(n) }
	}
	f := finder{w, s}
	names, err = f.holding(ctx, dir, p)
	if err == nil {
		return slices.DeleteFunc(names, other), none, nil
	}
	if !errors.Is(err, errAsk) {
		return nil, nil, err
	}
	names, others, err := f.begin(ctx, dir)
	return slices.DeleteFunc(names, other), func() ([]string, bool, error) {
		more, all, err := others()
		return slices.DeleteFunc(more, other), all, err
	}, err
}

// holding asks ripgrep which files hold a word that every match has. errAsk: it
// cannot tell. Git is not asked: it takes no less time than we do, and reads a
// file of any size into memory.
func (f finder) holding(ctx context.Context, dir string, p pattern) ([]string, error) {
	// Below the root its view of .gitignore files above would differ from ours,
	// and in a repository git knows best which files there are.
	if shortest(p.words) < 2 || f.s.Rg == "" || dir != "." || f.inGit() {
		return nil, errAsk
	}
	args := []string{
		"--no-config", "--files-with-matches", "--null", "--fixed-strings", "--hidden", "--text", "--no-messages", "--encoding=none",
		"--no-require-git", "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global", "--no-ignore-parent", "--no-follow",
		"--glob=!.git", "--glob=!node_modules/", fmt.Sprintf("--max-filesize=%d", maxGrepBytes),
	}
	if p.fold {
		args = append(args, "--ignore-case")
	}
	for _, w := range p.words {
		args = append(args, "-e", w)
	}
	names, err := f.s.ask(ctx, f.w.real, f.s.Rg, append(args, "--", dir)...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(filepath.ToSlash(name), "./")
	}
	slices.Sort(names)
	return slices.Compact(names), nil
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

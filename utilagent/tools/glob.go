package tools

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Bounds of a listing of files.
const (
	defaultFound = 200
	maxFound     = 1000
)

// Glob is the tool glob. Names come sorted: what a model sees does not depend on
// when files were written.
func Glob(w *Workspace, s Search) Tool {
	return New(Spec{
		Name:    "glob",
		Aliases: []string{"find_files"},
		Description: "Find files of the workspace by their names, sorted. A pattern without a slash matches in every directory: *.go; " +
			"else it begins at path: cmd/**/main.{go,py}. Files that .gitignore excludes, and node_modules, are left out.",
		Parameters: object([]string{"pattern"}, map[string]any{
			"pattern": property("string", "Pattern with *, ?, **, {a,b}, [a-z]"),
			"path":    property("string", "Directory to look in, relative to the working directory (default: the working directory)"),
			"limit":   property("integer", fmt.Sprintf("How many names to show (default %d, at most %d)", defaultFound, maxFound)),
		}),
		Effect: Reads, SideBySide: true,
	}, func(ctx context.Context, a globArgs) (string, error) { return w.glob(ctx, s, a) })
}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Limit   int    `json:"limit"`
}

func (w *Workspace) glob(ctx context.Context, s Search, a globArgs) (string, error) {
	dir, err := w.searchDir(a.Path)
	if err != nil {
		return "", err
	}
	matches, err := w.parseGlob(a.Pattern, dir)
	if err != nil {
		return "", err
	}
	names, all, err := finder{w, s}.files(ctx, dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	found, total, limit := 0, 0, bound(a.Limit, defaultFound, maxFound)
	for _, name := range names {
		if !matches(name) {
			continue
		}
		if _, err := w.root.Lstat(filepath.FromSlash(name)); err != nil {
			continue // git knows it, but it has been deleted
		}
		if total++; found < limit && b.Len() < maxReadBytes {
			b.WriteString(shown(name) + "\n")
			found++
		}
	}
	if total == 0 {
		return "", w.noFile(a, len(names))
	}
	if found < total {
		fmt.Fprintf(&b, "[%d of %d files shown; use a narrower pattern or path]\n", found, total)
	}
	return b.String() + walkedAll(all), nil
}

// noFile says what may be wrong with a pattern that matches nothing.
func (w *Workspace) noFile(a globArgs, looked int) error {
	if info, err := w.root.Stat(filepath.FromSlash(strings.Trim(a.Pattern, "/"))); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory. For the files in it use the pattern %q", a.Pattern, strings.Trim(a.Pattern, "/")+"/**")
	}
	return fmt.Errorf("none of %d files matches %s. Try a shorter pattern; files in node_modules and those that .gitignore excludes are only found if path names their directory",
		looked, a.Pattern)
}

// searchDir resolves the directory of a search.
func (w *Workspace) searchDir(name string) (string, error) {
	local, is, err := w.directory(name)
	if err == nil && !is {
		err = errFile{name}
	}
	if err != nil {
		return "", err
	}
	return filepath.ToSlash(local), nil
}

// errFile is the error for a file where a directory is needed.
type errFile struct{ name string }

func (e errFile) Error() string { return e.name + " is a file. Name a directory" }

func isFile(err error) bool {
	var e errFile
	return errors.As(err, &e)
}

func bound(n, normal, most int) int {
	if n <= 0 {
		return normal
	}
	return min(n, most)
}

// walkedAll is the note for a tree that is too large.
func walkedAll(all bool) string {
	if all {
		return ""
	}
	return fmt.Sprintf("[only the first %d files were looked at; name a directory in path]\n", maxFiles)
}

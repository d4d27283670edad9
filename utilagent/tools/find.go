package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

// Bounds of a listing of files.
const (
	defaultFound = 200
	maxFound     = 1000
)

// Glob returns the tool glob. Its results are sorted, so they do not depend on when files were written.
func Glob(w *Workspace) Tool {
	return New(Spec{
		Name:    "glob",
		Aliases: []string{"find_files"},
		Description: "Find files of the workspace by their names, sorted. A pattern without a slash matches in every directory: *.go; " +
			"else it begins at path: cmd/**/main.{go,py}. Files that .gitignore excludes, and node_modules, are left out.",
		Effect: Reads, SideBySide: true,
	}, func(ctx context.Context, a globArgs) (string, error) { return w.glob(ctx, a) })
}

type globArgs struct {
	Pattern string `json:"pattern" doc:"Pattern with *, ?, **, {a,b}, [a-z]"`
	Path    string `json:"path,omitempty" doc:"Directory to look in, relative to the working directory (default: the working directory)"`
	Limit   int    `json:"limit,omitempty" doc:"How many names to show (default 200, at most 1000)"`
}

func (w *Workspace) glob(ctx context.Context, a globArgs) (string, error) {
	dir, err := w.searchDir(a.Path)
	if err != nil {
		return "", err
	}
	matches, err := w.parseGlob(a.Pattern, dir)
	if err != nil {
		return "", err
	}
	names, all, err := w.files(ctx, dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	found, total, limit := 0, 0, bound(a.Limit, defaultFound, maxFound)
	for _, name := range names {
		if !matches(name) {
			continue
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

// noFile explains why a pattern may have matched nothing.
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

// errFile is the error for a file where a directory is expected.
type errFile struct{ name string }

func (e errFile) Error() string { return e.name + " is a file. Name a directory" }

func bound(n, normal, most int) int {
	if n <= 0 {
		return normal
	}
	return min(n, most)
}

// walkedAll returns a note if the tree was too large.
func walkedAll(all bool) string {
	if all {
		return ""
	}
	return fmt.Sprintf("[only the first %d files were looked at; name a directory in path]\n", maxFiles)
}

// Bounds of a pattern: the alternatives of {a,b}{c,d} are tried one by one.
const (
	maxBraces    = 3
	maxCommas    = 20
	maxGlobBytes = 1000
)

// parseGlob returns a predicate for names below base. A pattern without a slash matches the last element, as
// in .gitignore.
func (w *Workspace) parseGlob(glob, base string) (func(name string) bool, error) {
	g := strings.TrimPrefix(strings.TrimSpace(glob), "./")
	if path.IsAbs(g) {
		for _, dir := range []string{w.dir, w.real} {
			if rest, ok := strings.CutPrefix(g, dir+"/"); ok {
				g, base = rest, "."
			}
		}
	}
	if path.IsAbs(g) || g == ".." || strings.HasPrefix(g, "../") || strings.Contains(g, "/../") {
		return nil, w.outside(glob)
	}
	if g == "" || !doublestar.ValidatePattern(g) {
		return nil, fmt.Errorf("%q is not a valid pattern. Use * and ? within a name, ** for any directories, {a,b} and [a-z], such as %q", glob, "src/**/*.{ts,tsx}")
	}
	if len(g) > maxGlobBytes || strings.Count(g, "{") > maxBraces || strings.Count(g, ",") > maxCommas {
		return nil, fmt.Errorf("the pattern has more than %d pairs of {}, %d commas, or %d bytes. Use several simpler ones",
			maxBraces, maxCommas, maxGlobBytes)
	}
	if !strings.Contains(g, "/") {
		g = "**/" + g
	}
	prefix := ""
	if base != "." {
		prefix = base + "/"
	}
	return func(name string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		matches, err := doublestar.Match(g, rest)
		return ok && matches && err == nil
	}, nil
}

// maxFiles bounds a walk.
const maxFiles = 500_000

// maxIgnoreBytes bounds the size of a .gitignore file.
const maxIgnoreBytes = 1 << 20

// errLarge reports a file that exceeds the reader's limit.
var errLarge = errors.New("too large")

// workers returns the number of goroutines for a search. With few processors they wait for the disk; more
// than a few only compete.
func workers() int { return min(max(runtime.GOMAXPROCS(0), 4), 8) }

// room makes buf at least size long.
func room(buf *[]byte, size int) {
	if len(*buf) < size {
		*buf = make([]byte, max(size, 64<<10))
	}
}

// walker collects regular files. It follows no links and skips repositories' own directories.
type walker struct {
	w    *Workspace
	most int // maximum number of files, and of directories

	names []string
	full  bool // the limit was exceeded
}

// pending is a directory still to be read.
type pending struct {
	dir  string
	list ignore.List // rules of its parent directories
}

func (k *walker) sorted() []string {
	slices.Sort(k.names)
	return slices.Compact(k.names)
}

// dir adds the files below a directory. Unreadable entries are skipped.
func (k *walker) dir(ctx context.Context, dir string, list ignore.List) error {
	var buf []byte
	todo := []pending{{dir, list}}
	for looked := 0; len(todo) > 0; looked++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		next := todo[len(todo)-1]
		files, dirs := k.look(next, &buf)
		k.names, todo = append(k.names, files...), append(todo[:len(todo)-1], dirs...)
		if looked == k.most || len(k.names) >= k.most {
			k.names, k.full = k.names[:min(len(k.names), k.most)], true
			return nil
		}
	}
	return nil
}

// look lists a directory.
func (k *walker) look(at pending, buf *[]byte) (files []string, dirs []pending) {
	d, err := k.w.folder(filepath.FromSlash(at.dir))
	if err != nil {
		return nil, nil
	}
	defer d.close()
	entries, err := d.entries()
	if err != nil {
		return nil, nil
	}
	list := at.list
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		list = withIgnoreFile(d, list, at.dir, buf)
	}
	for _, e := range entries {
		name := path.Join(at.dir, e.Name())
		if e.Name() == ".git" || k.w.hidden(name) || list.Excludes(name, e.IsDir()) {
			continue
		}
		switch {
		case e.Type().IsRegular():
			files = append(files, name)
		case e.IsDir() && e.Name() != "node_modules":
			dirs = append(dirs, pending{name, list})
		}
	}
	return files, dirs
}

// withIgnoreFile adds the .gitignore file of d, which is the directory dir of the workspace.
func withIgnoreFile(d folder, list ignore.List, dir string, buf *[]byte) ignore.List {
	text, err := d.read(".gitignore", maxIgnoreBytes, buf)
	if err != nil {
		return list
	}
	if dir == "." {
		dir = ""
	}
	return list.With(dir, string(text))
}

const (
	maxEntries = 500
	maxDepth   = 3
)

// ListDir returns the tool list_dir.
func ListDir(w *Workspace) Tool {
	return New(Spec{
		Name:        "list_dir",
		Aliases:     []string{"list_files", "ls"},
		Description: "List a directory of the workspace: directories end in /, files come with their size in bytes.",
		Effect:      Reads, SideBySide: true,
	}, func(ctx context.Context, a listArgs) (string, error) { return w.listDir(ctx, a) })
}

type listArgs struct {
	Path  string `json:"path,omitempty" doc:"Directory, relative to the working directory (default: the working directory)"`
	Depth int    `json:"depth,omitempty" doc:"How many levels to show (default 1, at most 3)"`
}

func (w *Workspace) listDir(ctx context.Context, a listArgs) (string, error) {
	local, is, err := w.directory(a.Path)
	if err != nil {
		return "", err
	}
	if !is {
		return "", fmt.Errorf("%s is a file. Use read_file to read it", shown(a.Path))
	}
	l := listing{w: w}
	if err := l.list(ctx, filepath.ToSlash(local), "", min(max(a.Depth, 1), maxDepth)); err != nil {
		return "", w.explain(local, err)
	}
	if l.total == 0 {
		return "(empty directory)", nil
	}
	if l.total > maxEntries {
		fmt.Fprintf(&l.text, "[%d of %d entries shown; list a subdirectory]\n", maxEntries, l.total)
	}
	return l.text.String(), nil
}

// listing collects entries. Symbolic links are listed but not followed.
type listing struct {
	w     *Workspace
	text  strings.Builder
	total int
}

func (l *listing) list(ctx context.Context, dir, prefix string, depth int) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	entries, err := l.entries(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := prefix + e.Name()
		if l.total++; l.total <= maxEntries {
			l.text.WriteString(l.line(name, path.Join(dir, e.Name()), e) + "\n")
		}
		if !e.IsDir() || depth == 1 || e.Name() == ".git" {
			continue
		}
		if err := l.list(ctx, path.Join(dir, e.Name()), name+"/", depth-1); err != nil {
			l.text.WriteString(name + "/: cannot be read\n")
		}
	}
	return nil
}

// entries returns the entries of a directory, sorted by name.
func (l *listing) entries(dir string) ([]fs.DirEntry, error) {
	d, err := l.w.folder(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	defer d.close()
	entries, err := d.entries()
	sorting.Func(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (l *listing) line(name, full string, e fs.DirEntry) string {
	if e.IsDir() {
		return shown(name + "/")
	}
	name = shown(name)
	if e.Type()&fs.ModeSymlink != 0 {
		target, err := l.w.root.Readlink(filepath.FromSlash(full))
		if err != nil {
			target = "?"
		}
		return name + " -> " + shown(target)
	}
	info, err := l.w.root.Lstat(filepath.FromSlash(full))
	if err != nil {
		return name // removed since the directory was read
	}
	if !info.Mode().IsRegular() {
		return fmt.Sprintf("%s (%s)", name, kind(info.Mode()))
	}
	return fmt.Sprintf("%s  %d", name, info.Size())
}

package tools

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxEntries = 500
	maxDepth   = 3
)

// ListDir is the tool list_dir.
func ListDir(w *Workspace) Tool {
	return New(Spec{
		Name:        "list_dir",
		Aliases:     []string{"list_files", "ls"},
		Description: "List a directory of the workspace: directories end in /, files come with their size in bytes.",
		Parameters: object([]string{}, map[string]any{
			"path":  property("string", "Directory, relative to the working directory (default: the working directory)"),
			"depth": property("integer", fmt.Sprintf("How many levels to show (default 1, at most %d)", maxDepth)),
		}),
		Effect: Reads, SideBySide: true,
	}, func(ctx context.Context, a listArgs) (string, error) { return w.listDir(ctx, a) })
}

type listArgs struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
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

// listing collects entries; symbolic links are shown, never followed.
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

// entries are sorted by name.
func (l *listing) entries(dir string) ([]fs.DirEntry, error) {
	d, err := l.w.folder(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	defer d.close()
	entries, err := d.entries()
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
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
		return name // gone since the directory was read
	}
	if !info.Mode().IsRegular() {
		return fmt.Sprintf("%s (%s)", name, kind(info.Mode()))
	}
	return fmt.Sprintf("%s  %d", name, info.Size())
}

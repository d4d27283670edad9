package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Workspace is the directory that file tools work in. Every access goes through
// an [os.Root], so nothing leads out of it.
type Workspace struct {
	root *os.Root
	dir  string // as the user named it, absolute
	real string // without symbolic links

	off     offlimits.List
	hides   []string // what is off limits within the workspace, slash-separated
	scratch scratch

	unboxed error // why commands have no namespaces; nil: they have, or none has run
}

// OpenWorkspace opens a directory.
func OpenWorkspace(dir string) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &Workspace{root: root, dir: abs, real: real}, nil
}

// Limit says what is off limits, besides the names that always are. It is to be
// called before the workspace is used.
func (w *Workspace) Limit(l offlimits.List) {
	w.off, w.hides = l, l.Inside(w.real)
}

// hidden tells whether a path of the workspace, with slashes, must not be looked at.
func (w *Workspace) hidden(name string) bool {
	name = path.Clean(name)
	for _, h := range w.hides {
		if name == h || strings.HasPrefix(name, h+"/") {
			return w.off.Read(w.real, filepath.Join(w.real, filepath.FromSlash(name))) != nil
		}
	}
	return false
}

// changing checks a path, as resolve returns it, that is to be written.
func (w *Workspace) changing(local string) error {
	return w.off.Write(w.real, filepath.Join(w.real, local))
}

// Close releases the directory, and removes what tools have kept beside it.
func (w *Workspace) Close() error { return errors.Join(w.root.Close(), w.scratch.close()) }

// Dir is the directory's absolute path.
func (w *Workspace) Dir() string { return w.dir }

// outside is the answer to a path that leads out of the workspace.
func (w *Workspace) outside(name string) error {
	return fmt.Errorf("%s is outside the workspace %s. Use a path inside it, such as %q", shown(name), w.dir, "src/main.go")
}

// resolve turns a path as a model writes it into one below the root, without
// symbolic links as far as it exists: a file that is replaced must be the
// link's target, and links that are absolute but lead inside are fine.
//
// The links may change before the path is used. Then os.Root refuses it, so
// this is for good messages and right targets, not for safety.
func (w *Workspace) resolve(name string) (string, error) {
	local, err := w.locate(name)
	if err == nil && len(w.hides) > 0 {
		err = w.off.Read(w.real, filepath.Join(w.real, local))
	}
	return local, err
}

func (w *Workspace) locate(name string) (string, error) {
	local, err := w.local(name)
	if err != nil {
		return "", err
	}
	existing, rest := local, ""
	for existing != "." {
		real, err := filepath.EvalSymlinks(filepath.Join(w.real, existing))
		if err == nil {
			inside, ok := below(w.real, real)
			if !ok {
				return "", fmt.Errorf("%s is a link that leads outside the workspace %s. Use a path that stays inside", shown(name), w.dir)
			}
			return filepath.Join(inside, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", w.explain(name, err)
		}
		existing, rest = filepath.Dir(existing), filepath.Join(filepath.Base(existing), rest)
	}
	return filepath.Join(".", rest), nil
}

// maxPathBytes bounds a path; systems know no longer ones.
const maxPathBytes = 4096

// local checks a path by its text alone.
func (w *Workspace) local(name string) (string, error) {
	if trimmed := strings.TrimSpace(name); trimmed != name {
		if _, err := w.root.Lstat(name); err != nil { // a name may really begin or end so
			name = trimmed
		}
	}
	if name == "" || strings.ContainsRune(name, 0) {
		return "", errors.New("the path is empty or not a path. Name a file or directory of the workspace")
	}
	if len(name) > maxPathBytes {
		return "", fmt.Errorf("the path is longer than %d bytes. Use a shorter one", maxPathBytes)
	}
	clean := filepath.Clean(filepath.FromSlash(name))
	if filepath.IsAbs(clean) {
		for _, base := range []string{w.dir, w.real} {
			if inside, ok := below(base, clean); ok {
				return inside, nil
			}
		}
		return "", w.outside(name)
	}
	if clean != "." && !filepath.IsLocal(clean) {
		return "", w.outside(name)
	}
	return clean, nil
}

// below returns a path relative to a directory that holds it.
func below(dir, name string) (string, bool) {
	rel, err := filepath.Rel(dir, name)
	if err != nil || rel != "." && !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// isDir tells whether a path is a directory of the workspace.
func (w *Workspace) isDir(name string) bool {
	_, is, err := w.directory(name)
	return err == nil && is && name != ""
}

// directory resolves what should be a directory's name, "" the workspace's own, and
// tells whether it is one.
func (w *Workspace) directory(name string) (local string, is bool, err error) {
	if name == "" {
		return ".", true, nil
	}
	if local, err = w.resolve(name); err != nil {
		return "", false, err
	}
	info, err := w.root.Stat(local)
	if err != nil {
		return "", false, w.explain(name, err)
	}
	return local, info.IsDir(), nil
}

// open opens a regular file for reading. Devices and pipes are refused: opening
// one may do something, and reading it may never end.
func (w *Workspace) open(name string) (*os.File, fs.FileInfo, error) {
	local, err := w.resolve(name)
	if err != nil {
		return nil, nil, err
	}
	info, err := w.root.Stat(local)
	if err != nil {
		return nil, nil, w.explain(name, err)
	}
	if err := readable(name, info); err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(local, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, nil, w.explain(name, err)
	}
	if info, err = f.Stat(); err == nil { // it may be another one by now
		err = readable(name, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func readable(name string, info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a directory. Use list_dir to see what is in it", shown(name))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file but a %s: it cannot be read. Leave it alone", shown(name), kind(info.Mode()))
	}
	return nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/offlimits"
	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

// Workspace is the directory in which file tools work. Every access goes through an [os.Root], so no path can
// escape it.
type Workspace struct {
	root *os.Root
	dir  string // absolute path as given by the user
	real string // without symbolic links

	off     offlimits.List
	hides   []string // protected paths inside the workspace, slash-separated
	scratch scratch

	unboxed error // why commands have no namespaces, or nil
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

// Limit sets the protected paths, in addition to the names that are always protected. It must be called
// before the workspace is used.
func (w *Workspace) Limit(l offlimits.List) {
	w.off, w.hides = l, l.Inside(w.real)
}

// hidden reports whether a slash-separated path of the workspace must not be read.
func (w *Workspace) hidden(name string) bool {
	name = path.Clean(name)
	for _, h := range w.hides {
		if name == h || strings.HasPrefix(name, h+"/") {
			return w.off.Read(w.real, filepath.Join(w.real, filepath.FromSlash(name))) != nil
		}
	}
	return false
}

// changing returns an error if a path, as returned by resolve, must not be written.
func (w *Workspace) changing(local string) error {
	return w.off.Write(w.real, filepath.Join(w.real, local))
}

// Close closes the directory and removes the scratch directory.
func (w *Workspace) Close() error { return errors.Join(w.root.Close(), w.scratch.close()) }

// Dir returns the directory's absolute path.
func (w *Workspace) Dir() string { return w.dir }

// outside returns the error for a path outside the workspace.
func (w *Workspace) outside(name string) error {
	return fmt.Errorf("%s is outside the workspace %s. Use a path inside it, such as %q", shown(name), w.dir, "src/main.go")
}

// resolve converts a model's path to one below the root, with symbolic links resolved as far as it exists:
// the link's target must be replaced, not the link, and absolute links that lead inside are fine.
//
// The links may change before the path is used, in which case os.Root rejects it. So this provides good
// messages and correct targets, not safety.
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

// maxPathBytes bounds a path; operating systems support no longer ones.
const maxPathBytes = 4096

// local checks a path lexically.
func (w *Workspace) local(name string) (string, error) {
	if trimmed := strings.TrimSpace(name); trimmed != name {
		if _, err := w.root.Lstat(name); err != nil { // a name may actually begin or end with these characters
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

// below returns a path relative to a directory that contains it.
func below(dir, name string) (string, bool) {
	rel, err := filepath.Rel(dir, name)
	if err != nil || rel != "." && !filepath.IsLocal(rel) {
		return "", false
	}
	return rel, true
}

// directory resolves the name of a directory, "" for the workspace itself, and reports whether it is one.
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

// open opens a regular file for reading. Devices and pipes are rejected: opening one may have effects, and
// reading it may never end.
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
	if info, err = f.Stat(); err == nil { // it may have been replaced
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
		return fmt.Errorf("%s is a %s, not a regular file: it cannot be read. Leave it alone", shown(name), kind(info.Mode()))
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

// files returns the sorted, slash-separated files below a directory of the workspace that .gitignore does not
// exclude. If the directory itself is excluded, the user named it on purpose, so its contents are included.
func (w *Workspace) files(ctx context.Context, dir string) (names []string, all bool, err error) {
	walk := &walker{w: w, most: maxFiles}
	err = walk.dir(ctx, dir, w.parents(dir))
	return walk.sorted(), !walk.full, err
}

// parents returns the .gitignore files from the workspace's top to the parent of dir, unless they exclude
// dir.
func (w *Workspace) parents(dir string) ignore.List {
	list, at := ignore.List{}, "."
	if dir == "." {
		return list
	}
	var buf []byte
	for part := range strings.SplitSeq(dir, "/") {
		d, err := w.folder(filepath.FromSlash(at))
		if err != nil {
			return ignore.List{}
		}
		list = withIgnoreFile(d, list, at, &buf)
		d.close()
		if at = path.Join(at, part); list.Excludes(at, true) {
			return ignore.List{}
		}
	}
	return list
}

// folder is an open directory of the workspace. Links in it are not followed.
type folder struct{ root *os.Root }

// folder opens a directory; "." is the workspace.
func (w *Workspace) folder(dir string) (folder, error) {
	if w.hidden(filepath.ToSlash(dir)) {
		return folder{}, fs.ErrPermission
	}
	root, err := w.root.OpenRoot(dir)
	return folder{root}, err
}

func (d folder) close() { _ = d.root.Close() } // opened for reading

// entries lists the directory in any order.
func (d folder) entries() ([]fs.DirEntry, error) { return fs.ReadDir(d.root.FS(), ".") }

// read reads a regular file into buf, growing it as needed. For links and other non-regular files it returns
// nothing. The error is errLarge for more than most bytes.
func (d folder) read(name string, most int, buf *[]byte) (text []byte, err error) {
	info, err := d.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now, err := f.Stat()
	if err != nil || !os.SameFile(info, now) {
		return nil, err // a link has replaced it
	}
	info = now
	if info.Size() > int64(most) {
		return nil, errLarge
	}
	room(buf, int(info.Size()))
	n, err := io.ReadFull(f, (*buf)[:info.Size()])
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it was truncated
	}
	return (*buf)[:n], err
}

// CacheDirs returns the existing directories in which the user's build tools keep downloads and build
// results, for callers that let commands write there. Users run programs and build sources from these
// directories; see [CacheSet]. The user's general cache directory is created if necessary.
func CacheDirs(environ []string) []string {
	env := variables(environ)
	home := env["HOME"]
	or := func(name string, below ...string) string {
		if env[name] != "" || home == "" {
			return env[name]
		}
		return filepath.Join(append([]string{home}, below...)...)
	}
	under := func(dir string, below ...string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(append([]string{dir}, below...)...)
	}
	cargo, gradle, gopath := or("CARGO_HOME", ".cargo"), or("GRADLE_USER_HOME", ".gradle"), or("GOPATH", "go")
	var dirs []string
	for _, dir := range []string{
		cacheHome(environ), env["GOCACHE"], env["GOMODCACHE"], under(gopath, "pkg"),
		or("npm_config_cache", ".npm"), under(cargo, "registry"), under(cargo, "git"),
		under(gradle, "caches"), under(gradle, "daemon"), under(gradle, "wrapper"), under(home, ".m2", "repository"), env["PIP_CACHE_DIR"],
	} {
		if info, err := os.Stat(dir); filepath.IsAbs(dir) && err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// variables converts an environment to a map.
func variables(environ []string) map[string]string {
	env := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

// Bounds of the scratch directory.
const (
	maxKept      = 10       // files; the oldest is removed
	maxKeptBytes = 10 << 20 // per file
)

// scratch is a directory next to the workspace. It stores complete long results, where read_file and grep
// find them, and the temporary directory of commands. It is created on first use and removed by
// [Workspace.Close].
type scratch struct {
	mu    sync.Mutex
	space *Workspace
	kept  []string // oldest first
	count int
}

// open creates the directory. The caller holds mu.
func (s *scratch) open() error {
	if s.space != nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "uwf-tools-")
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "tmp"), 0o700)
	}
	if err == nil {
		s.space, err = OpenWorkspace(dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// close removes everything.
func (s *scratch) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.space == nil {
		return nil
	}
	space := s.space
	s.space, s.kept = nil, nil
	return errors.Join(space.Close(), safeopen.RemoveAll(space.real))
}

// tmp returns the temporary directory of commands.
func (s *scratch) tmp() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return "", fmt.Errorf("cannot make a temporary directory: %w; TMPDIR must name a directory that you can write to", err)
	}
	return filepath.Join(s.space.real, "tmp"), nil
}

// create creates a file for a long result.
func (s *scratch) create() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	if len(s.kept) == maxKept {
		if err := s.space.root.Remove(s.kept[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.count++
	name := fmt.Sprintf("result-%d.txt", s.count)
	f, err := s.space.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	s.kept = append(s.kept, name)
	return f, nil
}

// Keep writes a text that is too long to show to a file outside the workspace that read_file can read, and
// returns its path, or "" on failure, in which case the model only has the shortened text.
func (w *Workspace) Keep(text string) string {
	f, err := w.scratch.create()
	if err != nil {
		return ""
	}
	_, err = f.WriteString(text[:min(len(text), maxKeptBytes)])
	if err := errors.Join(err, f.Close()); err != nil {
		return ""
	}
	return f.Name()
}

// reading returns the workspace for a path to read: this one, or the scratch directory, which is always given
// as an absolute path.
func (w *Workspace) reading(name string) *Workspace {
	w.scratch.mu.Lock()
	defer w.scratch.mu.Unlock()
	kept := w.scratch.space
	if kept == nil || !filepath.IsAbs(filepath.FromSlash(name)) {
		return w
	}
	for _, dir := range []string{kept.dir, kept.real} {
		if _, ok := below(dir, filepath.Clean(filepath.FromSlash(name))); ok {
			return kept
		}
	}
	return w
}

// The following methods serve a workspace to another program, under the same rules as for a model.

// Contains reports whether a path, absolute or relative to the workspace, is inside it. The path need not
// exist.
func (w *Workspace) Contains(name string) bool {
	_, err := w.resolve(name)
	return err == nil
}

// Open opens a regular file for reading. The error is [fs.ErrNotExist] if the file does not exist, but never
// for a path outside.
func (w *Workspace) Open(name string) (*os.File, error) {
	f, _, err := w.open(name)
	if err == nil {
		return f, nil
	}
	if local, outside := w.resolve(name); outside == nil {
		if _, stat := w.root.Stat(local); errors.Is(stat, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
	}
	return nil, err
}

// Write creates or replaces a file and creates missing parent directories.
func (w *Workspace) Write(name, content string) error {
	_, err := w.writeFile(writeArgs{Path: name, Content: content})
	return err
}

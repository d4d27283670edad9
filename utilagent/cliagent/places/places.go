// Package places determines which private directories and files a confined program may write, and which files
// it gets as copies because the program obeys them later.
package places

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/programs"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Obeyed returns the files in a command's own directories that the program obeys, by directory. The next
// start of the program, perhaps unconfined, runs what they contain.
func Obeyed(command []string, env func(string) string) map[string][]string {
	found := map[string][]string{}
	places, _ := programs.Places(command)
	for _, p := range places {
		path, err := filepath.EvalSymlinks(p.Path(env))
		if err != nil {
			continue
		}
		for _, name := range p.Obeys {
			full := filepath.Join(path, name)
			found[filepath.Dir(full)] = append(found[filepath.Dir(full)], filepath.Base(full))
		}
	}
	return found
}

// Owned lists a command's own directories and files.
type Owned struct {
	Reads       []string // readable, with everything below
	Dirs, Files []string // writable
}

// Of returns what belongs to a command that works in cwd. It creates the directories of a known program,
// because the program itself cannot: its home directory is read-only. For an unknown program it returns the
// entries under its name in the usual places.
func Of(command []string, cwd string, env func(string) string) (o Owned, err error) {
	places, known := programs.Places(command)
	if !known {
		places = programs.Guess(command)
	}
	for _, p := range places {
		path := p.Path(env)
		if path == "" {
			continue
		}
		if known {
			if err := Make(path, p.Content); err != nil {
				return o, err
			}
		}
		for _, name := range p.Made {
			if err := Make(filepath.Join(path, name), ""); err != nil {
				return o, err
			}
		}
		o.Reads = append(o.Reads, path)
		switch {
		case p.Content != "":
			o.Files = append(o.Files, path)
		case p.Writes == nil:
			o.Dirs = append(o.Dirs, path)
		default:
			if err := o.add(path, p.Writes, cwd); err != nil {
				return o, err
			}
		}
	}
	return o, nil
}

// add adds writable paths below a directory. Files are added only if they exist, because a program fails on
// an empty file where it expects its login.
func (o *Owned) add(path string, names []string, cwd string) error {
	for _, name := range names {
		dir, isDir := strings.CutSuffix(name, "/")
		full := filepath.Join(path, filepath.FromSlash(strings.ReplaceAll(dir, "{project}", projectName(cwd))))
		if !isDir {
			if rest, made := strings.CutPrefix(name, "+"); made {
				if full = filepath.Join(path, rest); makeEmpty(full) != nil {
					continue
				}
			}
			if _, err := os.Stat(full); err == nil {
				o.Files = append(o.Files, full)
			}
			continue
		}
		if err := Make(full, ""); err != nil {
			return err
		}
		o.Dirs = append(o.Dirs, full)
	}
	return nil
}

func makeEmpty(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// projectName returns Claude Code's name for a directory, or "" (all directories) if that is too long: such a
// name ends in a checksum.
func projectName(dir string) string {
	const longest = 200
	if len(dir) > longest {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, dir)
}

// Make creates a missing directory or file, as the program would at its first start.
func Make(path, content string) error {
	if content == "" {
		return durable.OS().MkdirAll(path, 0o700)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.WriteFile(durable.OS(), path, []byte(content), 0o600)
}

// Layers holds a program's own directories in a box. Its writes go to directories of the thread, overlaid on
// the user's directories, which stay unchanged.
type Layers struct {
	Finds  []string // the directories; may contain symbolic links
	Mounts []plan.Mount
	layers []layer
}

// layer is a directory and its overlay.
type layer struct {
	programs.Place
	path, upper string
}

// The directories of a layer. The second belongs to the kernel.
const (
	upperDir = "upper"
	workDir  = "work"
)

// files is the directory in which the program sees those of its files that are in none of its own
// directories.
const files = "/run/uwf-own"

// Over creates the layers for a command that works in cwd. kept is the thread's directory; tmp is removed
// after the step.
func Over(command []string, cwd, tmp, kept string, env func(string) string) (l Layers, err error) {
	all, known := programs.Places(command)
	if !known {
		all = programs.Guess(command)
	}
	for _, p := range all {
		path := p.Path(env)
		if path == "" {
			continue
		}
		if p.Content != "" {
			err = l.file(p, path, filepath.Join(tmp, "files"))
		} else {
			p.Sessions = strings.ReplaceAll(p.Sessions, "{project}", cmp.Or(projectName(cwd), "*"))
			err = l.over(p, path, filepath.Join(kept, keyOf(path)))
		}
		if err != nil {
			return l, err
		}
	}
	return l, nil
}

// over overlays a directory.
func (l *Layers) over(p programs.Place, path, kept string) error {
	upper, work := filepath.Join(kept, upperDir), filepath.Join(kept, workDir)
	for _, dir := range []string{upper, work} {
		if err := durable.OS().MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	upper, err := filepath.EvalSymlinks(upper)
	if err != nil {
		return err
	}
	work = filepath.Join(filepath.Dir(upper), workDir)
	l.Finds, path = append(l.Finds, path), resolved(path)
	m := plan.Mount{Path: path, Kind: plan.Overlay, Upper: upper, Work: work}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		m = plan.Mount{Path: path, Kind: plan.Write, From: upper}
	}
	l.Mounts = append(l.Mounts, m)
	l.layers = append(l.layers, layer{p, path, upper})
	return nil
}

func keyOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// resolved returns a path with symbolic links resolved as far as it exists.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); err != nil && parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return real
}

// file gives the program a copy of a file and a link to it. Changes to the copy are dropped.
func (l *Layers) file(p programs.Place, path, dir string) error {
	text, err := safeopen.ReadFile(path, maxSession, safeopen.Follow) // Claude Code keeps a history in it
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(p.Content), nil
	}
	if err != nil {
		return err
	}
	if err := durable.OS().MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := keyOf(path) + ".json"
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		return err
	}
	l.Mounts = append(l.Mounts, plan.Mount{Path: files, Kind: plan.Write, From: dir}, plan.Mount{
		Path: filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path)), Kind: plan.Link, From: files + "/" + name,
	})
	return nil
}

// Bounds of files that are copied back, in bytes.
const (
	maxLogin   = 8 << 20
	maxSession = 128 << 20
)

// CopyBack copies renewed logins and the files of sessions to the user's own directories and removes them
// from the overlay. A file that cannot be copied stays.
func (l Layers) CopyBack(sessions []string) error {
	var errs []error
	for _, layer := range l.layers {
		errs = append(errs, layer.copyBack(sessions))
	}
	return errors.Join(errs...)
}

func (l layer) copyBack(sessions []string) error {
	upper, err := os.OpenRoot(l.upper)
	if err != nil {
		return err
	}
	defer upper.Close() // opened for reading
	var errs []error
	for _, name := range l.Logins {
		errs = append(errs, l.login(upper, name))
	}
	for _, id := range sessions {
		if l.Sessions == "" || id == "" || strings.ContainsAny(id, `/*?[\`) {
			continue
		}
		names, err := fs.Glob(upper.FS(), strings.ReplaceAll(l.Sessions, "{session}", id))
		errs = append(errs, err)
		for _, name := range names {
			errs = append(errs, l.session(upper, name))
		}
	}
	return errors.Join(errs...)
}

// login copies a login back unless the user's is newer.
func (l layer) login(upper *os.Root, name string) error {
	info, err := upper.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	if theirs, err := os.Lstat(filepath.Join(l.path, name)); err == nil && !info.ModTime().After(theirs.ModTime()) {
		return upper.Remove(name)
	}
	text, err := safeopen.ReadFileIn(upper, name, maxLogin)
	if err != nil {
		return err
	}
	return l.put(upper, name, text, info.Mode().Perm())
}

// session copies a session's file back if it only appends to the user's file.
func (l layer) session(upper *os.Root, name string) error {
	info, err := upper.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	text, err := safeopen.ReadFileIn(upper, name, maxSession)
	if err != nil {
		return err
	}
	theirs, err := safeopen.ReadFile(filepath.Join(l.path, name), maxSession, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.HasPrefix(text, theirs) {
		return fmt.Errorf("%s has also changed in %s; the thread keeps its version", name, l.path)
	}
	return l.put(upper, name, text, info.Mode().Perm())
}

// put replaces the user's file, unless it is a link, and removes the overlay's file.
func (l layer) put(upper *os.Root, name string, text []byte, mode fs.FileMode) error {
	path, disk := filepath.Join(l.path, name), durable.Rooted(l.path)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("restore: %w", &safeopen.NotFileError{Path: path, Mode: info.Mode().Type()})
	} else if err == nil {
		mode = info.Mode().Perm()
	}
	err := errors.Join(durable.OS().MkdirAll(l.path, 0o700), disk.MkdirAll(filepath.Dir(path), 0o700))
	if err == nil {
		err = durable.WriteFile(disk, path, text, mode)
	}
	if err != nil {
		return err
	}
	return upper.Remove(name)
}

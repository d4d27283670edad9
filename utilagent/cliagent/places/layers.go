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

// Layers are the places of a program in a box. What it writes there lies in a directory of the
// thread's, over what its user has, which stays as it is.
type Layers struct {
	Finds  []string // the places, perhaps with links
	Mounts []plan.Mount
	layers []layer
}

// layer is a place and what lies over it.
type layer struct {
	programs.Place
	path, upper string
}

// The directories of a layer. What is in the second is the kernel's.
const (
	upperDir = "upper"
	workDir  = "work"
)

// files is where the program finds those of its files that lie in no directory of its own.
const files = "/run/uwf-own"

// Over makes the layers of a command that works in cwd. kept is the thread's directory; tmp is
// removed after the step.
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

// over lays a directory over a place.
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

// resolved is a path without links, as far as there is something.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); err != nil && parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return real
}

// file gives the program a copy of a file, and a link to it. What it writes there is dropped.
func (l *Layers) file(p programs.Place, path, dir string) error {
	text, err := safeopen.ReadFile(path, maxLogin, safeopen.Follow)
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

// Bounds of files that are given back, in bytes.
const (
	maxLogin   = 8 << 20
	maxSession = 128 << 20
)

// GiveBack brings to the user's own places what the program has renewed to log in with, and the files of
// sessions. They are then no more over what the user has. A file that cannot be given back stays.
func (l Layers) GiveBack(sessions []string) error {
	var errs []error
	for _, layer := range l.layers {
		errs = append(errs, layer.giveBack(sessions))
	}
	return errors.Join(errs...)
}

func (l layer) giveBack(sessions []string) error {
	upper, err := os.OpenRoot(l.upper)
	if err != nil {
		return err
	}
	defer upper.Close() // nothing was written
	work := filepath.Join(filepath.Dir(l.upper), workDir, "work")
	if err := os.Chmod(work, 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) { // else it could not be removed later
		return err
	}
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

// login gives back a login, unless the user has a newer one.
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

// session gives back a session's file if it goes on where the user's ends.
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
		return fmt.Errorf("%s has changed in %s, too: the thread keeps its own", name, l.path)
	}
	return l.put(upper, name, text, info.Mode().Perm())
}

// put replaces the user's file, but no link, and removes that of the layer.
func (l layer) put(upper *os.Root, name string, text []byte, mode fs.FileMode) error {
	path, disk := filepath.Join(l.path, name), durable.Beneath(l.path)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("give back: %w", &safeopen.NotFileError{Path: path, Mode: info.Mode().Type()})
	} else if err == nil {
		mode = info.Mode().Perm()
	}
	err := disk.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = durable.WriteFile(disk, path, text, mode)
	}
	if err != nil {
		return err
	}
	return upper.Remove(name)
}

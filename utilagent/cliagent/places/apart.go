package places

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/programs"
)

// moved gives the program a directory in place of p, which is removed after the step. It has
// links to everything in the true one, which the program can read and, except for its logins,
// not write. What the program keeps apart is stored below state, one per place and working
// directory. So nobody later obeys anything that it makes, or puts in place of a link.
func (o *Owned) moved(p programs.Place, path, cwd, tmp, state string) error {
	key := keyOf(path + "\x00" + cwd)
	state = filepath.Join(state, key)
	dir, variable := p.Moved(filepath.Join(tmp, "own-"+key))
	for _, d := range []string{dir, state} {
		if err := durable.OS().MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if isOwn(p, entry.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(path, entry.Name()), filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(state)
	if err != nil {
		return err
	}
	defer root.Close() // only names were made
	for _, name := range p.Apart {
		base := strings.TrimSuffix(name, "/")
		if err := makePlain(root, base, base != name); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(state, base), filepath.Join(dir, base)); err != nil {
			return err
		}
	}
	o.Dirs, o.Apart, o.Env = append(o.Dirs, state), append(o.Apart, state), append(o.Env, variable)
	if p.Kept {
		o.Kept = append(o.Kept, variable)
	}
	return nil
}

func keyOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// isOwn reports whether a program does not share an entry of a place with the user's runs: what it has
// apart or makes anew, what belongs to such a file, such as its journal, and locks, which it could not take.
func isOwn(p programs.Place, entry string) bool {
	own := slices.Concat(p.Apart, p.Fresh)
	return strings.HasSuffix(entry, ".lock") || slices.ContainsFunc(own, func(name string) bool {
		base, isDir := strings.CutSuffix(name, "/")
		rest, ok := strings.CutPrefix(entry, base)
		return ok && (rest == "" || !isDir && strings.ContainsRune(".-", rune(rest[0])))
	})
}

// makePlain makes a directory or an empty file if there is none. It removes whatever else the
// program has put there, such as a link.
func makePlain(root *os.Root, name string, isDir bool) error {
	info, err := root.Lstat(name)
	if err == nil && (isDir && info.IsDir() || !isDir && info.Mode().IsRegular()) {
		return nil
	}
	if err == nil {
		err = root.RemoveAll(name)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	if isDir {
		return root.Mkdir(name, 0o700)
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

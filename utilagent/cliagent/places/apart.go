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

// moved gives the program a directory in the place of p, which goes with the step: links
// to all that the true one holds, which it can read and, but for its logins, not write;
// and what it has apart, which stays below state, one for each place and working
// directory. So whatever it makes, or puts in the place of a link, nobody obeys later.
func (o *Owned) moved(p programs.Place, path, cwd, tmp, state string) error {
	sum := sha256.Sum256([]byte(path + "\x00" + cwd))
	key := hex.EncodeToString(sum[:8])
	state = filepath.Join(state, key)
	dir, variable := p.Moved(filepath.Join(tmp, "own-"+key))
	for _, d := range []string{dir, state} {
		if err := durable.OS().MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if slices.ContainsFunc(p.Apart, func(name string) bool { return strings.TrimSuffix(name, "/") == entry.Name() }) {
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

// makePlain makes a directory or an empty file where there is none of the kind. What a
// program has put there instead, such as a link, goes.
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

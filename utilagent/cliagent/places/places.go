// Package places says which directories and files a confined program may write as its own, and
// which copies it gets in place of files that a program obeys later.
package places

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/programs"
)

// Obeyed lists the files in a command's own places that the program obeys, by directory:
// whoever starts the program next, perhaps unconfined, runs what they say.
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

// Owned are a command's own directories and files.
type Owned struct {
	Reads       []string // with all that is below
	Dirs, Files []string // that it may write
}

// Of finds what belongs to a command that works in cwd. It creates a known program's places,
// since the program could not: its home directory is closed. For an unknown program these are
// the entries under its name in the usual places.
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

// add adds what may be written below a directory. Files are added only if they exist: a
// program fails on an empty file where it expects its login.
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

// projectName is what Claude Code calls a directory; "", for all of them, if that is too
// long for a name: then it ends with a sum.
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

// Make makes a missing place, as the program would at its first start.
func Make(path, content string) error {
	if content == "" {
		return durable.OS().MkdirAll(path, 0o700)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.WriteFile(durable.OS(), path, []byte(content), 0o600)
}

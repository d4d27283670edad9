package cliagent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/programs"
)

// obeyed is what a command obeys in its own places, by the directory that it is in: what it says is run
// by whoever starts the program next, also unconfined.
func obeyed(command []string, env func(string) string) map[string][]string {
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

// own finds the directories and files of a command, and makes those of a known
// program: it could not make them itself, since its home directory is closed. Of one
// that is not known it is what lies under its name in the usual places.
func own(command []string, env func(string) string) (dirs, files []string, err error) {
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
			if err := makePlace(path, p.Content); err != nil {
				return nil, nil, err
			}
		}
		if p.Content == "" {
			dirs = append(dirs, path)
		} else {
			files = append(files, path)
		}
	}
	return dirs, files, nil
}

// makePlace makes a place that is not there, as the program would at its first start.
func makePlace(path, content string) error {
	if content == "" {
		return durable.OS().MkdirAll(path, 0o700)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.WriteFile(durable.OS(), path, []byte(content), 0o600)
}

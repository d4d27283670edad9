package proc

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// LookPath finds the file of a command. A bare name is looked up on the PATH of
// environ, which is not always this process's; another path that is not absolute
// begins at dir. Relative entries of PATH are passed over: they would depend on
// the directory that the child happens to work in. Errors: [exec.ErrNotFound] for
// a name that is nowhere, [fs.ErrNotExist], [fs.ErrPermission].
func LookPath(command, dir string, environ []string) (string, error) {
	if command == "" {
		return "", errors.New("the command is empty")
	}
	if filepath.Base(command) != command {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return exec.LookPath(path) // on Windows it adds the extension
	}
	var denied error
	for _, entry := range filepath.SplitList(searchPath(environ)) {
		if !filepath.IsAbs(entry) {
			continue
		}
		path, err := exec.LookPath(filepath.Join(entry, command))
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", exec.ErrNotFound
}

// searchPath is the value of PATH; the last one of a key wins.
func searchPath(environ []string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(environ[i], "="); ok && isPathKey(key) {
			return value
		}
	}
	return ""
}

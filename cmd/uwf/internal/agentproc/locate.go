package agentproc

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
)

// locate finds the file of a command. A bare name is looked up on the PATH that
// the agent will have, which is not always this process's: .env may set it.
// Relative entries of PATH are passed over: they would depend on the directory
// that the agent happens to work in.
func locate(command, dir string, environ []string) (string, error) {
	if command == "" {
		return "", &NotFoundError{Command: command, Err: errors.New("the command is empty")}
	}
	if filepath.Base(command) != command {
		path := command
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return executable(command, path)
	}
	var denied error
	for _, entry := range filepath.SplitList(searchPath(environ)) {
		if !filepath.IsAbs(entry) {
			continue
		}
		path, err := executable(command, filepath.Join(entry, command))
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
	return "", &NotFoundError{Command: command, Err: exec.ErrNotFound}
}

// executable checks that path can be run; on Windows it adds the extension.
func executable(command, path string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return "", &NotFoundError{Command: command, Err: err}
	}
	return found, nil
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

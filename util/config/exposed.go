package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/home"
)

// Exposed returns a warning for each of the two files that others on this
// machine can read and that holds secrets: config.yaml with a key written out,
// and .env. Each ends in the command that repairs it. Files that are missing or
// unreadable are not exposed.
func Exposed(configPath, dotEnvPath string) []string {
	var warnings []string
	if mode, ok := sharedMode(configPath); ok {
		src, err := ReadFile(configPath)
		if places := literalSecrets(src); err == nil && len(places) > 0 {
			warnings = append(warnings, warning(configPath, mode, strings.Join(places, ", ")))
		}
	}
	if mode, ok := sharedMode(dotEnvPath); ok {
		warnings = append(warnings, warning(dotEnvPath, mode, "your variables"))
	}
	return warnings
}

func warning(path string, mode fs.FileMode, what string) string {
	return fmt.Sprintf("%s holds %s and others can read it (mode %04o): chmod 600 %s", path, what, mode.Perm(), path)
}

// Open returns a warning for a home and a store that others on this machine can
// read: prompts and results of tools are in there. Each ends in the command that
// repairs it. A store in the home is as closed as the home.
func Open(dirs home.Dirs) []string {
	var warnings []string
	for _, dir := range []string{dirs.Home, dirs.Store} {
		const others = 0o055
		info, err := os.Stat(dir)
		if err == nil && modesMatter && info.Mode().Perm()&others != 0 {
			warnings = append(warnings, fmt.Sprintf("others can read %s (mode %04o): chmod 700 %s", dir, info.Mode().Perm(), dir))
		}
		if rel, err := filepath.Rel(dirs.Home, dirs.Store); err == nil && filepath.IsLocal(rel) {
			break
		}
	}
	return warnings
}

// sharedMode returns the mode of a file that others than its owner can read.
func sharedMode(path string) (fs.FileMode, bool) {
	info, err := os.Stat(path)
	if err != nil || !modesMatter {
		return 0, false
	}
	const others = 0o044
	return info.Mode(), info.Mode().Perm()&others != 0
}

package box

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
)

// maxFirstLine bounds what is read of a script.
const maxFirstLine = 64 << 10

// ProgramFiles are where a user's program has its files: along the links from its name, and those of
// the interpreter that its first line names. One that env looks for is in PATH. What lies in the
// workspace says nothing: anybody may have written it.
func ProgramFiles(path, workspace string, env []string) (dirs []string) {
	for range 2 {
		for range maxLinks {
			if below(workspace, path) {
				return dirs
			}
			dirs = append(dirs, installation(path))
			to, err := os.Readlink(path)
			if err != nil {
				break
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = to
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || below(workspace, real) {
			return dirs
		}
		dirs = append(dirs, installation(real))
		words := interpreter(path)
		if len(words) == 0 {
			return dirs
		}
		path = words[0]
		if filepath.Base(path) == "env" {
			if path, err = proc.LookPath(words[len(words)-1], "/", env); err != nil {
				return dirs
			}
		}
	}
	return dirs
}

// installation is the directory that has what comes with a program: the outermost node_modules, or
// that above bin.
func installation(path string) string {
	const modules = "/node_modules/"
	if i := strings.Index(path, modules); i >= 0 {
		return path[:i+len(modules)-1]
	}
	dir := filepath.Dir(path)
	if name := filepath.Base(filepath.Dir(dir)); filepath.Base(dir) == "bin" && strings.Contains(name, "env") {
		return filepath.Dir(dir) // of Python
	}
	return dir
}

// interpreter are the words of a script's first line.
func interpreter(path string) []string {
	f, err := safeopen.OpenFile(path, os.O_RDONLY, 0, safeopen.Follow)
	if err != nil {
		return nil
	}
	defer f.Close()
	start := make([]byte, maxFirstLine)
	n, _ := f.Read(start)
	line, _, _ := strings.Cut(string(start[:n]), "\n")
	line, isScript := strings.CutPrefix(line, "#!")
	if !isScript {
		return nil
	}
	return strings.Fields(line)
}

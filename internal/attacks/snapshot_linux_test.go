//go:build instruments

package attacks

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// snapshot is everything that can be observed about files: bytes, mode, owner, time and attributes.
type snapshot map[string]string

// snapshot records everything that no command may change, and what git and agents obey in the repository. It
// omits what git writes in normal work, and uwf's own files.
func (w *world) snapshot(t *testing.T) snapshot {
	t.Helper()
	s := snapshot{}
	skip := []string{"home/.uwf", "home/.cache/uwf", "home/src/repo/got", "home/src/repo/tools", "run", "fired", "results"}
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, path)
		if slices.Contains(skip, name) {
			return fs.SkipDir
		}
		if name == "home/.gnupg/S.gpg-agent" {
			return nil
		}
		if err != nil || gitWrites(name) {
			return nil //nolint:nilerr // unreadable for an ordinary user, which the mode shows
		}
		s[name] = facts(path, strings.HasPrefix(name, "home/src/repo"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gitWrites reports whether commits and branches change a file.
func gitWrites(name string) bool {
	_, below, ok := strings.Cut(name, ".git/")
	if !ok {
		return false
	}
	for _, part := range []string{"objects/", "refs/", "logs/", "index", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "packed-refs"} {
		if below == part || strings.HasPrefix(below, part) && !strings.HasPrefix(below, "objects/info") && !strings.HasPrefix(below, "refs/replace") {
			return true
		}
	}
	return strings.HasSuffix(below, "/index") || strings.HasSuffix(below, "/HEAD") || strings.HasSuffix(below, "/logs")
}

// facts returns the attributes of one file. Times count only outside the workspace, and never for
// directories, in which programs may create and remove temporary files.
func facts(path string, workspace bool) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "unreadable"
	}
	stat := info.Sys().(*syscall.Stat_t)
	text := fmt.Sprint(info.Mode(), " ", stat.Uid, ":", stat.Gid)
	switch {
	case info.Mode().IsRegular():
		b, err := os.ReadFile(path)
		text += fmt.Sprintf(" %x %v", sha256.Sum256(b), err)
		if !workspace {
			text += fmt.Sprint(" ", info.ModTime().UnixNano(), " links ", stat.Nlink)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(path)
		text += " -> " + to
	}
	names := make([]byte, 1000)
	if n, err := unix.Llistxattr(path, names); err == nil && n > 0 {
		text += " attributes " + strings.ReplaceAll(string(names[:n]), "\x00", " ")
	}
	return text
}

// changed lists the names that differ.
func changed(before, after snapshot) []string {
	names := maps.Clone(before)
	maps.Copy(names, after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return before[name] == after[name] })
}

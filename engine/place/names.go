package place

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// Below is the path from one directory to another in it.
func Below(root, dir string) (rel string, ok bool) {
	rel, err := filepath.Rel(root, dir)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Shown is a path as messages name it. A model may have chosen it, and a line
// break in it must not begin a line of ours.
func Shown(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

package suggest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// File is the name, beside a file that is not there, that was probably meant;
// "" if none is near. dir is where a relative path begins; the name begins as
// path does.
func File(dir, path string) string {
	at := path
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	entries, err := os.ReadDir(filepath.Dir(at))
	if err != nil {
		return "" // the caller says what is wrong with the path
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	near := Nearest(filepath.Base(at), names, 1)
	if len(near) == 0 {
		return ""
	}
	before, _ := filepath.Split(path)
	return before + near[0]
}

// Ambiguous is the error for the beginning of a name or a hash that several of a kind
// have.
func Ambiguous(kind, word string, matches []string) error {
	shown := matches
	if len(shown) > 5 {
		shown = append(shown[:5:5], "…")
	}
	return &protocol.Error{
		Code:    protocol.CodeNotFound,
		Message: fmt.Sprintf("%s %q is ambiguous: %d match", kind, word, len(matches)),
		Hints:   []string{"say which: " + strings.Join(shown, ", ")},
	}
}

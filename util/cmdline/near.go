package cmdline

import (
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/util/suggest"
)

// NearFile is the name, beside a file that is not there, that was probably meant;
// "" if none is near. dir is where a relative path begins; the name begins as
// path does.
func NearFile(dir, path string) string {
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
	near := suggest.Nearest(filepath.Base(at), names, 1)
	if len(near) == 0 {
		return ""
	}
	before, _ := filepath.Split(path)
	return before + near[0]
}

// DidYouMean is a hint at the word that was probably meant, with what stands before
// it; none if none is near.
func DidYouMean(before, word string, known []string) []string {
	near := suggest.Nearest(word, known, 1)
	if len(near) == 0 {
		return nil
	}
	return []string{"did you mean " + before + near[0] + "?"}
}

// NoFile is the error for a file that is named on the command line and not there.
func NoFile(dir, path string, hints ...string) error {
	if near := NearFile(dir, path); near != "" {
		hints = append([]string{"did you mean " + near + "?"}, hints...)
	}
	return NotFound("there is no file "+path, hints...)
}

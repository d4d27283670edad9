package cmdline

import (
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

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
	if near := suggest.File(dir, path); near != "" {
		hints = append([]string{"did you mean " + plaintext.Word(near) + "?"}, hints...)
	}
	return NotFound("there is no file "+path, hints...)
}

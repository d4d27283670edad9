package fault

import (
	"fmt"

	"github.com/united-workforce/uwf/util/suggest"
)

// Nearest are hints for a name that does not exist.
func Nearest(name string, known []string) []string {
	var hints []string
	for _, n := range suggest.Nearest(name, known, 3) {
		hints = append(hints, fmt.Sprintf("did you mean %q?", n))
	}
	return hints
}

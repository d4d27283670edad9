package plaintext

import (
	"fmt"
	"strconv"
	"strings"
)

// Names is a list of at most so many names, each of which may be anything: one that could be
// taken for more, or for the end of the list, is quoted.
func Names(names []string, most int) string {
	var said []string
	for _, name := range names[:min(len(names), most)] {
		if strings.ContainsAny(name, `,"`) || strings.TrimSpace(name) != name || Line(name) != name {
			name = strconv.Quote(name)
		}
		said = append(said, name)
	}
	if more := len(names) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, ", ")
}

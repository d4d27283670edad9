package fileheads_test

import (
	"regexp"
	"strings"

	"github.com/united-workforce/uwf/cas/heads/fileheads"
)

// id returns the id for a test's name of a thread.
func id(name string) string {
	const unused = "ILOU-"
	const instead = "1100Y"
	out := strings.ToUpper(name)
	for i := range unused {
		out = strings.ReplaceAll(out, unused[i:i+1], instead[i:i+1])
	}
	return "0" + out + strings.Repeat("Z", 25-len(out))
}

var named = regexp.MustCompile(`@[a-z0-9-]+`)

// ids replaces @names with ids.
func ids(text string) string {
	return named.ReplaceAllStringFunc(text, func(name string) string { return id(name[1:]) })
}

// sums replaces @names with ids, and adds a checksum to each complete line.
func sums(text string) string {
	var out strings.Builder
	for line := range strings.Lines(ids(text)) {
		if object, whole := strings.CutSuffix(line, "\n"); whole {
			line = string(fileheads.Summed([]byte(object)))
		}
		out.WriteString(line)
	}
	return out.String()
}

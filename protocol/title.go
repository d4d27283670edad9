package protocol

import "strings"

// MaxTitle bounds the title of a thread, in characters.
const MaxTitle = 200

// TitleOf is the title of a thread that nobody has given one: the first line of its
// task that says anything.
func TitleOf(task string) string {
	for line := range strings.Lines(task) {
		if line = strings.Trim(strings.TrimSpace(line), "# "); line != "" {
			return shortened(line)
		}
	}
	return ""
}

func shortened(line string) string {
	if r := []rune(line); len(r) > MaxTitle {
		return string(r[:MaxTitle-1]) + "…"
	}
	return line
}

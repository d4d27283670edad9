package tools

import (
	"fmt"
	"strings"
)

// notFound says that a text is not in a file, and shows what is most like it:
// models correct themselves from that, and from little else.
func notFound(name, text, old, replacement string) error {
	if replacement != "" && strings.Contains(text, replacement) {
		return fmt.Errorf("old_string is not in %s, but new_string is: the edit seems to be made already. Read the file before you go on", name)
	}
	lines := strings.Split(text, "\n")
	wanted := trimmed(strings.Split(strings.Trim(old, "\n"), "\n"))
	at, hits := nearest(trimmed(lines), wanted)
	if at < 0 {
		return fmt.Errorf("old_string is not in %s, nor anything like it. Read the file and copy the text from there", name)
	}
	why := "The most similar place"
	if hits == len(wanted) {
		why = "It differs in white space only from this place"
	}
	return fmt.Errorf("old_string is not in %s. %s:\n%sCopy the text from there, without the line numbers",
		name, why, excerpt(text, at+1, at+min(len(wanted), 10)))
}

// nearest finds the window of lines that is most like wanted, and how many of
// its lines are equal. It returns -1 if nothing is alike.
func nearest(lines, wanted []string) (at, hits int) {
	at = -1
	for i := range lines {
		n := 0
		for j, w := range wanted {
			if i+j < len(lines) && w != "" && lines[i+j] == w {
				n++
			}
		}
		if n > hits {
			at, hits = i, n
		}
	}
	if at >= 0 {
		return at, hits + blanks(wanted)
	}
	key := longest(wanted)
	best := 0.5 // less alike would mislead
	for i, line := range lines {
		if s := alike(line, wanted[key]); s > best {
			at, best = max(i-key, 0), s
		}
	}
	return at, 0
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.Join(strings.Fields(l), " ")
	}
	return out
}

func blanks(lines []string) int {
	n := 0
	for _, l := range lines {
		if l == "" {
			n++
		}
	}
	return n
}

func longest(lines []string) int {
	best := 0
	for i, l := range lines {
		if len(l) > len(lines[best]) {
			best = i
		}
	}
	return best
}

// alike is the share of pairs of neighbouring bytes that two lines have in
// common (Dice's coefficient), from 0 to 1.
func alike(a, b string) float64 {
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := map[[2]byte]int{}
	for i := range len(a) - 1 {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	common := 0
	for i := range len(b) - 1 {
		p := [2]byte{b[i], b[i+1]}
		if pairs[p] > 0 {
			pairs[p]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}

package tools

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
)

// minTelling is the length from which it says something that a text is there.
const minTelling = 8

// notFound says that a text is not in a file, and shows what is most like it:
// models correct themselves from that, and from little else.
func notFound(name, text, old, replacement string) error {
	if len(strings.TrimSpace(replacement)) >= minTelling && strings.Contains(text, replacement) {
		return fmt.Errorf("old_string is not in %s, but new_string is: the edit seems to be made already. Read the file before you go on", name)
	}
	lines, wanted := strings.Split(text, "\n"), strings.Split(strings.Trim(old, "\r\n"), "\n")
	at, hits := nearest(trimmed(lines), trimmed(wanted))
	if at < 0 {
		return fmt.Errorf("old_string is not in %s, nor anything like it. Read the file and copy the text from there", name)
	}
	why := "The most similar place"
	if hits == len(wanted) {
		why = "It differs in white space only from this place"
	}
	return fmt.Errorf("old_string is not in %s. %s:\n%s%sCopy the text from there, without the line numbers",
		name, why, excerpt(text, at+1, at+min(len(wanted), 10)), differences(lines, wanted, at))
}

// maxDifferences bounds how many lines are set against each other.
const maxDifferences = 4

// differences sets the lines that are wanted against those that are there, from
// the line at on, in quotes: else nobody sees a tab.
func differences(lines, wanted []string, at int) string {
	var b strings.Builder
	n := 0
	for i, w := range wanted {
		there := ""
		if at+i < len(lines) {
			there = strings.TrimSuffix(lines[at+i], "\r")
		}
		if w = strings.TrimSuffix(w, "\r"); w == there || at+i >= len(lines) {
			continue
		}
		// Where the text begins or ends within a line, it need not have the rest.
		if i == 0 && strings.HasSuffix(there, w) || i == len(wanted)-1 && strings.HasPrefix(there, w) {
			continue
		}
		if n++; n > maxDifferences {
			continue
		}
		fmt.Fprintf(&b, "line %d is %q, not %q\n", at+i+1, plaintext.Short(there, 200), plaintext.Short(w, 200))
	}
	if n > maxDifferences {
		fmt.Fprintf(&b, "%d lines more differ\n", n-maxDifferences)
	}
	return b.String()
}

// maxPlacesOf bounds at how many places of the wanted text one line is tried: a
// closing brace is everywhere.
const maxPlacesOf = 8

// nearest finds the window of lines that is most like wanted, and how many of
// its lines are equal. It returns -1 if nothing is alike.
func nearest(lines, wanted []string) (at, hits int) {
	places := map[string][]int{}
	for i, w := range wanted {
		if w != "" && len(places[w]) < maxPlacesOf {
			places[w] = append(places[w], i)
		}
	}
	votes := map[int]int{}
	at = -1
	for j, line := range lines {
		for _, i := range places[line] {
			if i > j {
				continue
			}
			votes[j-i]++
			if n := votes[j-i]; n > hits || n == hits && j-i < at {
				at, hits = j-i, n
			}
		}
	}
	if at >= 0 {
		return at, hits + blanks(wanted)
	}
	return likest(lines, wanted), 0
}

// likest finds the window by the line of wanted that says most; -1: none is
// like it.
func likest(lines, wanted []string) int {
	key := longest(wanted)
	p := pairsOf(wanted[key])
	at, best := -1, 0.5 // less alike would mislead
	for i, line := range lines {
		if s := p.alike(line); s > best {
			at, best = max(i-key, 0), s
		}
	}
	return at
}

// trimmed are lines without the white space that is easily got wrong.
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

// pairs counts the pairs of neighbouring bytes of a line.
type pairs struct {
	count [1 << 16]int32
	size  int
	taken []uint16
}

func pairsOf(line string) *pairs {
	p := &pairs{size: len(line)}
	for i := range len(line) - 1 {
		p.count[pair(line, i)]++
	}
	return p
}

func pair(s string, at int) uint16 { return uint16(s[at])<<8 | uint16(s[at+1]) }

// alike is the share of pairs that two lines have in common (Dice's
// coefficient), from 0 to 1.
func (p *pairs) alike(line string) float64 {
	if p.size < 2 || len(line) < 2 || len(line) > 4*p.size || p.size > 4*len(line) {
		return 0 // or so little that it does not count
	}
	p.taken = p.taken[:0]
	for i := range len(line) - 1 {
		if k := pair(line, i); p.count[k] > 0 {
			p.count[k]--
			p.taken = append(p.taken, k)
		}
	}
	for _, k := range p.taken {
		p.count[k]++
	}
	return 2 * float64(len(p.taken)) / float64(p.size+len(line)-2)
}

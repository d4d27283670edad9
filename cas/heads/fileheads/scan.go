package fileheads

import (
	"slices"
	"strings"
)

// parseTable reads line by line. If a line is not in our form, it reads the text as YAML,
// and if that fails too, as much of it as possible.
func parseTable(path, text string, keys rule) *table {
	t := parseLines(path, text, keys)
	if len(t.bad) == 0 || slices.ContainsFunc(t.bad, func(b badLine) bool { return hidesThread(b.text) }) {
		return t
	}
	if y := parseReshaped(path, text, t.comments, keys); y != nil && (len(y.bad) == 0 || len(y.entries) > len(t.entries)) {
		return y
	}
	return t
}

const byteOrderMark = "\ufeff"

func parseLines(path, text string, keys rule) *table {
	t := &table{path: path, entries: make([]entry, 0, strings.Count(text, "\n")+1)}
	text = strings.TrimPrefix(text, byteOrderMark)
	var numbers []int // of the lines that entries come from
	for number := 1; text != ""; number++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		e, ok := parseLine(line)
		reason := ""
		if ok {
			reason = keys(e.key)
		}
		if ok && reason == "" {
			t.entries = append(t.entries, e)
			numbers = append(numbers, number)
			continue
		}
		switch content := strings.TrimSpace(line); {
		case content == "":
		case content[0] == '#' && !hidesThread(content):
			t.comments = append(t.comments, content)
		default:
			if reason == "" {
				reason = whyNot(line)
			}
			t.bad = append(t.bad, badLine{number, strings.TrimRight(line, "\r"), reason})
		}
	}
	t.settle(numbers)
	return t
}

// hidesThread reports whether a line would be a thread's but for its first character, which
// makes YAML skip it, or but for a comment before it. A line that a person commented out
// still has that character, after the mark.
func hidesThread(line string) bool {
	if line == "" {
		return false
	}
	if behind, found := strings.CutPrefix(line, strings.TrimSuffix(saysFacts, "\n")); found && behind != "" {
		return true
	}
	if _, found := behindComment(line); found {
		return true
	}
	e, ok := parseLine("0" + line[1:])
	return ok && threadProblem(e.key) == ""
}

// behindComment finds a thread at the end of a comment, where a damaged line end has joined
// two lines. A person who comments a thread out writes nothing between the mark and the
// thread.
func behindComment(line string) (entry, bool) {
	line = strings.TrimSpace(line)
	at := len(line) - headLine + 1
	if at <= 0 || line[0] != '#' || strings.Trim(line[:at], "# \t") == "" {
		return entry{}, false
	}
	e, ok := parseLine(line[at:])
	return e, ok && threadProblem(e.key) == ""
}

// settle sorts the entries, given the lines that they come from, and takes out
// those whose key has two hashes: nobody can tell which one is right.
func (t *table) settle(numbers []int) {
	if inOrder(t.entries) {
		return
	}
	all := make([]numbered, len(t.entries))
	for i, e := range t.entries {
		all[i] = numbered{e, numbers[i]}
	}
	slices.SortStableFunc(all, func(a, b numbered) int { return strings.Compare(a.key, b.key) })
	t.entries = t.entries[:0]
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].key == all[0].key {
			n++
		}
		t.add(all[:n])
		all = all[n:]
	}
	slices.SortFunc(t.bad, func(a, b badLine) int { return a.number - b.number })
}

// numbered is an entry with its line.
type numbered struct {
	entry
	number int
}

func inOrder(entries []entry) bool {
	for i := 1; i < len(entries); i++ {
		if entries[i-1].key >= entries[i].key {
			return false
		}
	}
	return true
}

// add adds entries of one key.
func (t *table) add(same []numbered) {
	contradicts := func(e numbered) bool { return e.hash != same[0].hash }
	if !slices.ContainsFunc(same, contradicts) {
		t.entries = append(t.entries, same[0].entry)
		return
	}
	for _, e := range same {
		line := strings.TrimSuffix(string(appendLine(nil, e.entry)), "\n")
		t.bad = append(t.bad, badLine{e.number, line, e.key + " has two hashes: keep one line"})
	}
}

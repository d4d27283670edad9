package fileheads

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// The first line of threads.yaml and registry.yaml is a checksum of the text after its digits. People who
// edit the file delete the line: a file without it is trusted.
const (
	sumPrefix = "# sum: crc32c-"
	sumDigits = 8
	// withFacts follows the digits. It records the minimum size of complete lines in facts.jsonl, if there
	// are any: a shorter file has lost its end.
	withFacts = ", with %012d bytes of facts.jsonl"
	factsLen  = len(withFacts) + 12 - len("%012d")
	// sumLineMax is the maximum length of the line.
	sumLineMax = len(sumPrefix) + sumDigits + factsLen + len("\n")
	sumFormat  = "%08x"
	// byteOrderMark is what some editors write before the line.
	byteOrderMark = "\ufeff"
)

// sumText returns the digits of a checksum.
func sumText(covered []byte) string {
	return fmt.Sprintf(sumFormat, crc32.Checksum(covered, castagnoli()))
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// maxFile bounds each file, in bytes: it is read as a whole.
const maxFile = 512 << 20

// table is threads.yaml or registry.yaml: plain lines `key: hash`, sorted by key.
type table struct {
	path     string
	threads  bool     // keys are thread ids
	minFacts int64    // minimum size of complete lines in facts.jsonl, in bytes
	wrong    string   // a wrong checksum line, which stays until a repair; otherwise ""
	comments []string // whole lines
	entries  []entry  // sorted by key, each key once
	bad      []badLine

	// inPlace means that the checksum is right and all lines have the length of a thread's. They are then
	// looked up and edited in the text: parsing 100,000 threads would cost more than a step.
	inPlace bool
	data    []byte // of the whole file
	head    int    // length of its first line
}

// text returns the lines below the checksum.
func (t *table) text() []byte { return t.data[t.head:] }

// entry is a line of a table.
type entry struct {
	key  string
	hash protocol.Hash
	line int // from 1; 0: not read from the file
}

// badLine is an unreadable line. It stays in the file unchanged.
type badLine struct {
	line         int
	text, reason string
}

// headLine is the length of a line of threads.yaml.
const headLine = threadid.Len + len(": ") + protocol.HashLen + len("\n")

// threadProblem explains why a key isn't a thread id, "" if it is.
func threadProblem(key string) string {
	if threadid.Valid(key) {
		return ""
	}
	return fmt.Sprintf("%q is not a thread id", key)
}

// read reads threads.yaml or registry.yaml. A missing file counts as empty.
func (x *Heads) read(ctx context.Context, name string) (*table, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := x.readFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return parseTable(x.path(name), text, name == threadsFile), nil
}

// readFile reads a file. It follows links, because a person can keep these files elsewhere.
func (x *Heads) readFile(name string) ([]byte, error) {
	return safeopen.ReadFile(x.path(name), maxFile, safeopen.Follow)
}

// sumLine is the first line of a file with a checksum.
type sumLine struct {
	sum      string
	minFacts int64 // see table
	size     int   // without its newline
}

// parseSum parses the first line of a file, if it has a checksum.
func parseSum(data []byte) (s sumLine, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(sumPrefix))
	s.sum = string(rest[:min(sumDigits, len(rest))])
	rest = rest[len(s.sum):]
	s.size = len(data) - len(rest)
	if ok && len(rest) >= factsLen && bytes.HasPrefix(rest, []byte(", with ")) {
		_, _ = fmt.Sscanf(string(rest[:factsLen]), withFacts, &s.minFacts) // otherwise the checksum is wrong
		s.size += factsLen
	}
	return s, ok
}

func parseTable(path string, data []byte, threads bool) *table {
	t := &table{path: path, threads: threads}
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	first, summed := parseSum(data)
	if !summed {
		t.parse(string(data), 1)
		return t
	}
	t.minFacts = first.minFacts
	head := min(first.size+len("\n"), len(data)) // a different byte here is damage that hides no thread
	text := data[head:]
	if first.sum != sumText(data[len(sumPrefix)+len(first.sum):]) {
		t.wrong = strings.TrimSuffix(string(data[:head]), "\n")
	} else if threads && len(text)%headLine == 0 && validLine(string(text[:min(headLine, len(text))])) {
		t.inPlace, t.data, t.head = true, data, head
		return t
	}
	t.parse(string(text), 2)
	return t
}

// seekLines is the number of lines that [Heads.seek] reads at a time.
const seekLines = 1500

// seek finds the head of an active thread, "" if there is none, without keeping the file in memory. It returns
// false if the file cannot be edited in place, or is damaged.
func (x *Heads) seek(thread string) (found protocol.Hash, ok bool) {
	f, err := safeopen.OpenMax(x.path(threadsFile), maxFile, safeopen.Follow)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }() // nothing was written
	block := make([]byte, seekLines*headLine)
	n, _ := f.ReadAt(block[:sumLineMax], 0)
	first, ok := parseSum(block[:n])
	if !ok || n <= first.size {
		return "", false
	}
	sum := crc32.Checksum(block[len(sumPrefix)+sumDigits:first.size+len("\n")], castagnoli())
	for at := int64(first.size + len("\n")); err == nil; at += int64(n) {
		n, err = f.ReadAt(block, at)
		lines := block[:n]
		if n%headLine != 0 || found == "" && !validLine(string(lines[:min(headLine, n)])) {
			return "", false
		}
		sum = crc32.Update(sum, castagnoli(), lines)
		if i, is := findLine(lines, thread); is {
			line := string(lines[i*headLine : (i+1)*headLine])
			if found = hashIn(line); !validLine(line) {
				return "", false
			}
		}
	}
	return found, errors.Is(err, io.EOF) && first.sum == fmt.Sprintf(sumFormat, sum)
}

// findLine returns the index of a thread's line, or its insertion point.
func findLine(lines []byte, thread string) (int, bool) {
	return sort.Find(len(lines)/headLine, func(i int) int {
		return strings.Compare(thread, string(lines[i*headLine:i*headLine+threadid.Len]))
	})
}

// hashIn returns the hash in a line of threads.yaml.
func hashIn(line string) protocol.Hash {
	return protocol.Hash(line[threadid.Len+len(": ") : headLine-1])
}

// validLine reports whether a text is a line of threads.yaml as written by uwf, or empty.
func validLine(line string) bool {
	if len(line) != headLine {
		return line == ""
	}
	id, hash := line[:threadid.Len], line[threadid.Len+len(": "):headLine-1]
	return line[len(id):len(id)+len(": ")] == ": " && line[headLine-1] == '\n' && isWord(id) && isWord(hash)
}

// isWord reports whether a text consists of digits and upper case letters.
func isWord(text string) bool {
	for i := range len(text) {
		if c := text[i]; c-'0' > 9 && c-'A' > 'Z'-'A' {
			return false
		}
	}
	return true
}

// ensureParsed parses the table unless it is already parsed.
func (t *table) ensureParsed() {
	if t.inPlace {
		t.inPlace = false
		t.parse(string(t.text()), 2)
	}
}

func (t *table) parse(text string, number int) {
	t.entries = make([]entry, 0, strings.Count(text, "\n")+1)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		content := strings.TrimSpace(line)
		e, reason := parseLine(content)
		if reason == "" && t.threads {
			reason = threadProblem(e.key)
		}
		switch {
		case content == "":
		case content[0] == '#':
			t.comments = append(t.comments, content)
		case reason == "":
			e.line = number
			t.entries = append(t.entries, e)
		default:
			t.bad = append(t.bad, badLine{number, line, reason})
		}
		number++
	}
	t.settle()
}

// parseLine parses a line, or returns the reason why it can't. The key and the hash can be quoted, and a
// comment can follow.
func parseLine(line string) (e entry, reason string) {
	const want = "invalid entry: want `name: hash`"
	key, rest, found := strings.Cut(line, ":")
	switch quoted, err := strconv.QuotedPrefix(line); {
	case strings.HasPrefix(line, "'"):
		key, rest, found = strings.Cut(line[1:], "':")
	case err == nil && strings.HasPrefix(line, `"`):
		if key, err = strconv.Unquote(quoted); err == nil {
			rest, found = strings.CutPrefix(line[len(quoted):], ":")
		}
	}
	rest, _, _ = strings.Cut(rest, " #")
	if !found || !strings.HasPrefix(rest, " ") || key == "" || strings.ContainsAny(key[:1], "-{[#\"") {
		return e, want
	}
	h, err := protocol.ParseHash(strings.Trim(strings.TrimSpace(rest), `"'`))
	if err != nil {
		return e, err.Error()
	}
	return entry{key: key, hash: h}, ""
}

// settle sorts the entries and removes those whose key has two hashes, because the right one is unknown.
func (t *table) settle() {
	slices.SortStableFunc(t.entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	all := t.entries
	t.entries = t.entries[:0]
	for len(all) > 0 {
		n, contradict := 1, false
		for ; n < len(all) && all[n].key == all[0].key; n++ {
			contradict = contradict || all[n].hash != all[0].hash
		}
		if !contradict {
			t.entries = append(t.entries, all[0])
		}
		for _, e := range all[:n] {
			if contradict {
				line := strings.TrimSuffix(string(t.appendLine(nil, e)), "\n")
				t.bad = append(t.bad, badLine{e.line, line, e.key + " has two hashes; keep one line"})
			}
		}
		all = all[n:]
	}
	slices.SortFunc(t.bad, func(a, b badLine) int { return a.line - b.line })
}

// find returns the index of a key, or its insertion point.
func (t *table) find(key string) (int, bool) {
	if t.inPlace {
		return findLine(t.text(), key)
	}
	return slices.BinarySearchFunc(t.entries, key, func(e entry, key string) int { return strings.Compare(e.key, key) })
}

// get returns the hash of a key, "" if it is missing, and an error if an unreadable line mentions the key.
func (t *table) get(key string) (protocol.Hash, error) {
	i, ok := t.find(key)
	if ok && t.inPlace {
		line := string(t.text()[i*headLine : (i+1)*headLine])
		if validLine(line) {
			return hashIn(line), nil
		}
		t.ensureParsed()
		return t.get(key)
	}
	if ok {
		return t.entries[i].hash, nil
	}
	for _, b := range t.bad {
		if mentions(b.text, key) {
			return "", invalid(t.path, b.line, b.reason)
		}
	}
	return "", nil
}

// all yields the entries, sorted by key.
func (t *table) all(yield func(key string, h protocol.Hash) bool) {
	if t.inPlace {
		for text := string(t.text()); text != ""; text = text[headLine:] {
			if !validLine(text[:headLine]) {
				t.ensureParsed() // a hand-made checksum of invalid text
				break
			}
			if !yield(text[:threadid.Len], hashIn(text)) {
				return
			}
		}
	}
	for _, e := range t.entries {
		if !yield(e.key, e.hash) {
			return
		}
	}
}

func (t *table) set(key string, h protocol.Hash) {
	i, ok := t.find(key)
	e := entry{key: key, hash: h}
	end := i
	if ok {
		end++
	}
	if t.inPlace {
		t.data = slices.Replace(t.data, t.head+i*headLine, t.head+end*headLine, t.appendLine(nil, e)...)
	} else {
		t.entries = slices.Replace(t.entries, i, end, e)
	}
}

func (t *table) remove(key string) {
	i, ok := t.find(key)
	switch {
	case ok && t.inPlace:
		t.data = slices.Delete(t.data, t.head+i*headLine, t.head+(i+1)*headLine)
	case ok:
		t.entries = slices.Delete(t.entries, i, i+1)
	}
}

// mentions reports whether a text contains a key as a word.
func mentions(text, key string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], key)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(key)
		if (start == 0 || !inWord(rune(text[start-1]))) && (end == len(text) || !inWord(rune(text[end]))) {
			return true
		}
		at = end
	}
}

// inWord reports whether a character can be part of an unquoted key.
func inWord(c rune) bool {
	return c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// problems returns the errors for all unreadable lines, or for the checksum.
func (t *table) problems() (all []error) {
	if t.wrong != "" && len(t.bad) == 0 { // otherwise the damage is in one of those lines
		all = append(all, invalid(t.path, 1, fmt.Sprintf("checksum mismatch: the file is damaged, or was edited "+
			"without removing this line; read %d lines", len(t.entries))))
	}
	for _, b := range t.bad {
		all = append(all, invalid(t.path, b.line, b.reason))
	}
	return all
}

// save replaces the file. Unreadable lines and a wrong checksum stay.
func (x *Heads) save(t *table) error {
	return durable.WriteFile(x.fsys, t.path, t.render(), 0o644)
}

func (t *table) render() []byte {
	first := ""
	switch {
	case t.wrong != "":
		first = t.wrong + "\n"
	case len(t.bad) == 0: // a checksum implies that everything is readable
		first = sumPrefix + strings.Repeat("0", sumDigits)
		if t.minFacts > 0 {
			first += fmt.Sprintf(withFacts, t.minFacts)
		}
		first += "\n"
	}
	var out []byte
	if t.inPlace { // in the memory of what was read, unless the line has become longer
		t.data = slices.Replace(t.data, 0, t.head, []byte(first)...)
		t.head = len(first)
		out = t.data
	} else {
		out = append(make([]byte, 0, headLine*(2+len(t.entries)+len(t.bad)+len(t.comments))), first...)
	}
	for _, c := range t.comments {
		out = append(append(out, c...), '\n')
	}
	for _, e := range t.entries {
		out = t.appendLine(out, e)
	}
	for _, b := range t.bad {
		out = append(append(out, b.text...), '\n')
	}
	if t.wrong == "" && len(t.bad) == 0 {
		covered := out[len(sumPrefix)+sumDigits:]
		copy(out[len(sumPrefix):], sumText(covered))
	}
	return out
}

// appendLine writes an entry as a line. It quotes a name that YAML might not read as text; Go's quoting is
// valid in YAML.
func (t *table) appendLine(out []byte, e entry) []byte {
	if threadid.Valid(e.key) || isPlain(e.key) {
		out = append(out, e.key...)
	} else {
		out = strconv.AppendQuote(out, e.key)
	}
	return append(append(append(out, ": "...), e.hash...), '\n')
}

// isPlain reports whether every YAML parser reads a name as text. It is conservative.
func isPlain(name string) bool {
	switch strings.ToLower(name) {
	case "", "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return false
	}
	isOther := func(c rune) bool { return !inWord(c) }
	return !strings.ContainsFunc(name, isOther) && 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z'
}

// Workflow returns the hash of a name, or [heads.ErrNoWorkflow]. An invalid workflow name has no hash, even
// if the file contains it.
func (x *Heads) Workflow(ctx context.Context, name string) (protocol.Hash, error) {
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return "", fmt.Errorf("%w: the name %q %s", heads.ErrNoWorkflow, name, problem)
	}
	f, err := x.read(ctx, registryFile)
	if err != nil {
		return "", err
	}
	if f.wrong != "" && len(f.bad) == 0 { // the name or its hash might be damaged
		return "", f.problems()[0]
	}
	h, err := f.get(name)
	if err == nil && h == "" {
		return "", fmt.Errorf("%w: %s", heads.ErrNoWorkflow, name)
	}
	return h, err
}

// Workflows returns the registry, sorted by name. If some lines are unreadable, it returns an error together
// with the others.
func (x *Heads) Workflows(ctx context.Context) ([]heads.Named, error) {
	f, err := x.read(ctx, registryFile)
	if err != nil {
		return nil, err
	}
	names := make([]heads.Named, 0, len(f.entries))
	for _, e := range f.entries {
		names = append(names, heads.Named{Name: e.key, Hash: e.hash, Problem: protocol.WorkflowNameProblem(e.key)})
	}
	return names, errors.Join(f.problems()...)
}

// Unregister removes a name and returns its hash, or [heads.ErrNoWorkflow].
func (x *Heads) Unregister(ctx context.Context, name string) (h protocol.Hash, err error) {
	err = x.locked(ctx, registryLock, func() error {
		f, err := x.read(ctx, registryFile)
		if err != nil {
			return err
		}
		if h, err = f.get(name); err != nil {
			return err
		}
		if h == "" {
			return fmt.Errorf("%w: %s", heads.ErrNoWorkflow, name)
		}
		f.remove(name)
		return x.save(f)
	})
	return h, err
}

// Register sets the hash of a name.
func (x *Heads) Register(ctx context.Context, name string, h protocol.Hash) error {
	if !h.Valid() {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%q is not a hash", h)}
	}
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("the name %q %s", name, problem)}
	}
	return x.locked(ctx, registryLock, func() error {
		f, err := x.read(ctx, registryFile)
		if err != nil {
			return err
		}
		if _, err := f.get(name); err != nil {
			return err
		}
		f.set(name, h)
		return x.save(f)
	})
}

// misnamed removes the entries whose keys aren't valid workflow names.
func (t *table) misnamed() (bad []badLine) {
	t.entries = slices.DeleteFunc(t.entries, func(e entry) bool {
		problem := protocol.WorkflowNameProblem(e.key)
		if problem != "" {
			line := strings.TrimSuffix(string(t.appendLine(nil, e)), "\n")
			bad = append(bad, badLine{e.line, line, problem})
		}
		return problem != ""
	})
	return bad
}

// A line of history.jsonl or facts.jsonl is an object that ends with a checksum of the preceding text, so
// that damage is detected. A line without one is trusted, because older programs and people write such lines.
const (
	checkKey    = "check"
	checkFormat = `,"check":"%08x"}`
	checkLen    = len(`,"check":"00000000"}`)
)

// summed adds the checksum and the newline to an object.
func summed(object []byte) []byte {
	object = bytes.TrimSuffix(object, []byte("}"))
	return append(fmt.Appendf(object, checkFormat, crc32.ChecksumIEEE(object)), '\n')
}

// checkSum returns an error if a line has a wrong checksum.
func checkSum(line []byte) error {
	if has, fits := sumOf(line); has && !fits {
		return errors.New(`checksum mismatch: the line is damaged, or was edited without removing "check"`)
	}
	return nil
}

// sumOf reports whether a line ends with a checksum, and whether that is right.
func sumOf(line []byte) (has, fits bool) {
	line = bytes.TrimRight(line, " \t\r")
	at := len(line) - checkLen
	if at < 0 || !bytes.HasPrefix(line[at:], []byte(`,"check":"`)) {
		return false, false
	}
	digits := hex.AppendEncode(nil, binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(line[:at])))
	rest, fits := bytes.CutPrefix(line[at+len(`,"check":"`):], digits)
	return true, fits && string(rest) == `"}`
}

// begin is the beginning of each line written by uwf.
const begin = `{"thread":"`

// errNothing means that a line has no content: it is blank, or the beginning of an unacknowledged write.
var errNothing = errors.New("is empty")

// isBlank reports whether a line is blank.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// readLine parses a line without its newline. A last line without a newline might have been torn by a kill or a
// power cut.
func readLine[T any](line []byte, whole bool, parse func([]byte) (T, error)) (T, error) {
	if whole {
		return parse(line)
	}
	text := withoutZeros(line)
	v, err := parse(text)
	if err != nil && isTorn(text) {
		err = errNothing
	}
	return v, err
}

// withoutZeros removes the zeros that a power cut can leave at the end of a file.
func withoutZeros(tail []byte) []byte { return bytes.TrimRight(tail, "\x00") }

// isTorn reports whether a last line is the beginning of a line written by uwf.
func isTorn(tail []byte) bool {
	if n := min(len(begin), len(tail)); string(tail[:n]) != begin[:n] {
		return false
	}
	err := json.NewDecoder(bytes.NewReader(tail)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// line is a line of a file: its content, or why it is unreadable.
type line[T any] struct {
	value  T
	text   []byte // with its newline, if any
	number int    // from 1
	err    error
}

// linesOf yields the lines of a file, except those without content.
func linesOf[T any](data []byte, parse func([]byte) (T, error)) iter.Seq[line[T]] {
	return func(yield func(line[T]) bool) {
		number := 0
		for text := range bytes.Lines(data) {
			number++
			content, whole := bytes.CutSuffix(text, []byte("\n"))
			value, err := readLine(content, whole, parse)
			if errors.Is(err, errNothing) {
				continue
			}
			if !yield(line[T]{value, text, number, err}) {
				return
			}
		}
	}
}

// repairTail handles a last line without a newline: it removes a torn line. For any other, damaged or not, it
// returns the newline that the caller must write first. parse returns an error for an unreadable line.
func (x *Heads) repairTail(file string, parse func(line []byte) error) (start []byte, err error) {
	f, err := safeopen.OpenMax(x.path(file), maxFile, safeopen.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for line, err := range linesBack(f, nil) {
		if err != nil || line.whole {
			return nil, err
		}
		text := withoutZeros(line.text)
		switch err := parse(text); {
		case errors.Is(err, errNothing), err != nil && isTorn(text):
			return nil, x.fsys.Truncate(x.path(file), line.offset)
		case err == nil && len(text) < len(line.text):
			return []byte("\n"), x.fsys.Truncate(x.path(file), line.offset+int64(len(text)))
		}
		return []byte("\n"), nil
	}
	return nil, nil
}

package agentproc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// ReadResult reads the result from the stdout of a finished agent. It is the last line, if that is a JSON
// object, a YAML flow mapping or a bare hash, or a final block of YAML that starts with "stepHash:" (or
// "error:"). Otherwise it is the last JSON object with a step hash, because processes that the agent started
// may still write. A result without a step hash has an error. Errors are [*ResultError].
func ReadResult(runDir string) (protocol.Result, error) {
	f, err := openOutput(runDir, runfiles.StdoutFile)
	var odd *safeopen.NotFileError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return protocol.Result{}, &ResultError{Reason: "it printed nothing"}
	case errors.As(err, &odd):
		return protocol.Result{}, &ResultError{Reason: "its " + runfiles.StdoutFile + " " + odd.Reason()}
	case err != nil:
		return protocol.Result{}, fmt.Errorf("read the agent's output: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return protocol.Result{}, fmt.Errorf("read the agent's output: %w", err)
	}
	end, err := readEnding(f, info.Size())
	if err != nil {
		return protocol.Result{}, fmt.Errorf("read the agent's output: %w", err)
	}
	tail, err := readTail(f, info.Size(), chunk)
	if err != nil {
		return protocol.Result{}, fmt.Errorf("read the agent's output: %w", err)
	}
	w, err := parseForms(end, tail)
	if err == nil {
		var r protocol.Result
		if r, err = w.result(); err == nil {
			return r, nil
		}
	}
	if r := earlier(tail); r.StepHash != "" {
		return r, nil
	}
	return protocol.Result{}, &ResultError{Line: excerpt(end.line), Reason: err.Error()}
}

// earlier returns the last line that is an object with stepHash, or the zero value if that is invalid.
func earlier(tail []byte) protocol.Result {
	for at := len(tail); at > 0; {
		begin := bytes.LastIndexByte(tail[:at-1], '\n') + 1
		line := bytes.TrimSpace(tail[begin:at])
		at = begin
		if len(line) == 0 || line[0] != '{' || !bytes.Contains(line, []byte(resultKey)) {
			continue
		}
		w, err := parseObject(line)
		if _, has := w[resultKey]; has || err != nil {
			r, _ := w.result()
			return r
		}
	}
	return protocol.Result{}
}

// resultKey occurs in every object that reports a finished step.
const resultKey = `stepHash`

// wire is a result as agents write it. Only the step hash, or else the error, must be valid. The other fields
// are for display and dropped if malformed; the step node is authoritative.
type wire map[string]json.RawMessage

// field returns a field of a result, or the zero value if it is missing or malformed.
func field[T any](w wire, key string) T {
	var v, none T
	if len(w[key]) == 0 || json.Unmarshal(w[key], &v) != nil {
		return none
	}
	return v
}

func (w wire) text(key string) string { return field[string](w, key) }

// maxRepeated limits the number of retries that an agent can claim.
const maxRepeated = 1000

// maxHints limits the number of hints from an agent.
const maxHints = 8

func (w wire) result() (protocol.Result, error) {
	r := protocol.Result{SessionID: w.text("sessionId"), Role: w.text("role"), Error: clean(w.text("error")),
		Durable: field[bool](w, "durable"), Kind: protocol.FailureKind(w.text("kind")), Usage: field[*protocol.Usage](w, "usage")}
	if at := field[float64](w, "retryAtMs"); at > 0 && at < 1<<53 {
		r.RetryAtMs = int64(at)
	}
	if n := field[float64](w, "repeated"); n > 0 && n < maxRepeated {
		r.Repeated = int(n)
	}
	hints := field[[]any](w, "hints")
	for _, h := range hints[:min(len(hints), maxHints)] {
		s, _ := h.(string)
		if hint := strings.TrimSpace(plaintext.Line(s)); hint != "" {
			r.Hints = append(r.Hints, hint)
		}
	}
	r.DetailHash, _ = protocol.ParseHash(w.text("detailHash"))
	r.RawHash, _ = protocol.ParseHash(w.text("rawHash"))
	if w.text(resultKey) == "" {
		if r.Error == "" {
			return r, errors.New("has no stepHash")
		}
		return r, nil
	}
	hash, err := protocol.ParseHash(w.text(resultKey))
	if err != nil {
		return r, fmt.Errorf("has an invalid stepHash: %w", err)
	}
	r.StepHash = hash
	return r, nil
}

// parseForms tries the forms of a result, most common first.
func parseForms(end ending, tail []byte) (wire, error) {
	switch {
	case len(end.line) == 0:
		return nil, errors.New("it printed nothing")
	case end.tooLong:
		return nil, fmt.Errorf("is longer than %d MB", maxLine>>20)
	case end.line[0] == '{':
		return parseObject(end.line)
	}
	if _, err := protocol.ParseHash(string(end.line)); err == nil {
		return wire{resultKey: fmt.Appendf(nil, "%q", end.line)}, nil
	}
	err := errors.New("is neither a hash nor an object with stepHash")
	for _, key := range []string{resultKey, "error"} {
		if i := bytes.LastIndex(append([]byte("\n"), tail...), []byte("\n"+key+":")); i >= 0 {
			var w wire
			if w, err = parseYAML(tail[i:]); err == nil {
				return w, nil
			}
		}
	}
	return nil, err
}

// parseObject parses a JSON object or a YAML flow mapping.
func parseObject(line []byte) (wire, error) {
	var w wire
	var hash *string
	err := json.Unmarshal(line, &w)
	if err == nil && len(w[resultKey]) > 0 {
		err = json.Unmarshal(w[resultKey], &hash)
	}
	if err == nil {
		return w, nil
	}
	if y, yerr := parseYAML(line); yerr == nil {
		return y, nil
	}
	return nil, fmt.Errorf("is not valid JSON: %w", err)
}

// parseYAML parses a YAML result. It keeps hashes and IDs as written, because YAML reads 0123456789012 and
// 1234567890E12 as numbers.
func parseYAML(src []byte) (wire, error) {
	doc, err := yamldoc.ParseAnswer(src, yamldoc.Bounds{})
	if err != nil {
		return nil, fmt.Errorf("is not valid YAML: %w", err)
	}
	if doc.Root.Kind != yamldoc.Mapping {
		return nil, errors.New("is not a mapping")
	}
	w := wire{}
	for _, key := range []string{resultKey, "sessionId", "detailHash", "role", "error", "rawHash", "kind", "hints", "usage",
		"durable", "retryAtMs", "repeated"} {
		n := doc.Root.Get(key)
		if n == nil {
			continue
		}
		value := n.Value()
		typed := key == "durable" || key == "retryAtMs" || key == "repeated"
		if !typed && value != nil && n.Kind == yamldoc.Scalar {
			value = n.Text
		}
		w[key], _ = json.Marshal(value) // empty for a number that JSON lacks, such as .inf
	}
	return w, nil
}

const (
	chunk = 64 << 10
	// maxLine limits the last line. Agents for the original uwf put their whole answer into it.
	maxLine = 16 << 20
	// maxBlank limits the blanks after the last line.
	maxBlank = 1 << 20
)

// ending is the relevant end of a file of any length.
type ending struct {
	line    []byte // the last non-blank line, trimmed
	tooLong bool   // maxLine or maxBlank was exceeded, and line is incomplete
}

// readEnding reads the last line of a file of the given size. It reads backwards, no more than necessary, and
// keeps only that line in memory.
func readEnding(f io.ReaderAt, size int64) (ending, error) {
	end, err := lastByte(f, size, maxBlank, func(b byte) bool { return !isSpace(b) })
	if err != nil || end == 0 {
		return ending{}, err
	}
	begin, err := lastByte(f, end, maxLine, func(b byte) bool { return b == '\n' })
	if err != nil {
		return ending{}, err
	}
	var e ending
	if end == size-maxBlank || end-begin == maxLine {
		e.tooLong = true
		end = min(end, begin+chunk)
	}
	e.line = make([]byte, end-begin)
	if _, err := f.ReadAt(e.line, begin); err != nil && err != io.EOF {
		return ending{}, err
	}
	e.line = bytes.TrimSpace(e.line)
	return e, nil
}

// lastByte returns the offset after the last wanted byte before end. It examines at most most bytes; if none
// is wanted, it returns the offset where it stopped.
func lastByte(f io.ReaderAt, end, most int64, wanted func(byte) bool) (int64, error) {
	stop := max(0, end-most)
	buf := make([]byte, min(end-stop, chunk))
	for end > stop {
		n := min(end-stop, chunk)
		if _, err := f.ReadAt(buf[:n], end-n); err != nil && err != io.EOF {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			if wanted(buf[i]) {
				return end - n + i + 1, nil
			}
		}
		end -= n
	}
	return end, nil
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\r' || b == '\t' }

// readTail reads the last n bytes of a file of the given size, starting at a line boundary.
func readTail(f io.ReaderAt, size, n int64) ([]byte, error) {
	n = min(n, size)
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, size-n); err != nil && err != io.EOF {
		return nil, err
	}
	if n < size {
		if _, whole, found := bytes.Cut(buf, []byte("\n")); found {
			return whole, nil
		}
	}
	return buf, nil
}

// Limits on how much of an agent's stderr is shown.
const (
	tailBytes = 4 << 10
	tailLines = 20
)

// excerptLen is the number of characters shown of an invalid line.
const excerptLen = 200

// fullBelow is the free space in bytes below which a disk counts as full, so that the agent's output may be
// lost.
const fullBelow = 64 << 10

// stderrTail returns the end of the agent's stderr, "" if empty. It adds a note if the disk is full, because
// stderr may be incomplete then.
func stderrTail(runDir string) string {
	tail := Tail(filepath.Join(runDir, runfiles.StderrFile))
	free, err := durable.FreeSpace(runDir)
	if err != nil || free >= fullBelow {
		return tail
	}
	return strings.TrimPrefix(tail+"\nno space left on the disk of "+runDir, "\n")
}

// Warnings returns the warnings in the captured end of the agent's stderr: lines that start with "warning: "
// or, from uwf step put, "uwf: warning: ", without that prefix. They matter to the user even if the step
// succeeds.
func (o Outcome) Warnings() []string {
	var found []string
	for line := range strings.Lines(o.Stderr) {
		if text, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "uwf: "), "warning: "); ok {
			found = append(found, text)
		}
	}
	return found
}

// Tail returns the end of a text file, cleaned, or "" if it is empty or unreadable.
func Tail(path string) string {
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	tail, err := readTail(f, info.Size(), tailBytes)
	if err != nil {
		return ""
	}
	lines := strings.Split(clean(string(tail)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// excerpt returns the start of a line, cleaned for display.
func excerpt(line []byte) string {
	line = line[:min(len(line), 4*excerptLen)]
	runes := []rune(clean(string(line)))
	if len(runes) > excerptLen {
		return string(runes[:excerptLen]) + "…"
	}
	return string(runes)
}

// clean makes untrusted text safe to print.
func clean(s string) string { return strings.TrimSpace(plaintext.Strip(s)) }

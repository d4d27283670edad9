package cliagent

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/utilagent/internal/sessions"
)

// Usage is what a program says that its run cost.
type Usage struct {
	// Usage has input tokens without those read from a cache. Nil: it does not say.
	*protocol.Usage
	// TokensOfSession and CostOfSession say that the figures accumulate over all runs of the
	// session, so what was counted before is subtracted.
	TokensOfSession bool
	CostOfSession   bool
}

// Since is the usage of one run, given the totals that the program had told of its
// session before, and the totals that it has told now.
func (u Usage) Since(before protocol.Usage) (run, totals protocol.Usage) {
	if u.Usage == nil || u.TokensOfSession && u.Tokens() == 0 {
		return protocol.Usage{}, before
	}
	run, totals = *u.Usage, before
	if u.TokensOfSession {
		totals = *u.Usage
		totals.CostUSD = before.CostUSD
		if rest, ok := minus(totals, before); ok {
			rest.CostUSD = run.CostUSD
			run = rest
		}
	}
	if u.CostOfSession && run.CostUSD != nil {
		totals.CostUSD = run.CostUSD
		if before.CostUSD != nil && *before.CostUSD <= *run.CostUSD {
			rest := math.Round((*run.CostUSD-*before.CostUSD)*1e9) / 1e9 // of no meaning beyond that
			run.CostUSD = &rest
		}
	}
	return run, totals
}

// minus subtracts tokens; not ok if the result would be negative: then the program has reset
// its counters.
func minus(a, b protocol.Usage) (protocol.Usage, bool) {
	ok := true
	less := func(x, y int64) int64 {
		ok = ok && x >= y
		return x - y
	}
	a.InputTokens = less(a.InputTokens, b.InputTokens)
	a.CacheReadTokens = less(a.CacheReadTokens, b.CacheReadTokens)
	a.CacheWriteTokens = less(a.CacheWriteTokens, b.CacheWriteTokens)
	a.OutputTokens = less(a.OutputTokens, b.OutputTokens)
	a.ReasoningTokens = less(a.ReasoningTokens, b.ReasoningTokens)
	return a, ok
}

// spent is what the calls of one run cost.
type spent struct {
	bill   protocol.Bill
	tookMs int64
	untold int // calls in which the model worked, and nothing was said of the cost
}

// add adds a call. A call that ended before the model said a word has no known cost. A program
// that counts over the session reports in a later call what it did not report before.
func (s *spent) add(out tried) {
	s.tookMs += out.usage.DurationMs
	switch {
	case out.Usage.Usage != nil:
		if out.Usage.TokensOfSession && out.task.session != "" {
			s.untold = 0
		}
		u := out.usage
		s.bill.Add(&u)
	case out.worked:
		s.untold++
	}
}

// nothing reports whether no model worked in any call.
func (s *spent) nothing() bool { return s.bill.Parts == 0 && s.untold == 0 }

// usage is what all calls cost; nil if that is unknown.
func (s *spent) usage() *protocol.Usage {
	b := s.bill
	for range s.untold {
		b.Add(nil)
	}
	u := b.Usage()
	if u != nil {
		u.DurationMs = s.tookMs
	}
	return u
}

// known is what is remembered of a session of the program.
type known struct {
	Session string         `json:"session"`
	Program string         `json:"program"` // with its arguments if it is [Adapter.Commanded]
	Cwd     string         `json:"cwd"`     // without symbolic links
	Thread  string         `json:"thread,omitempty"`
	Model   string         `json:"model,omitempty"`
	Version string         `json:"version,omitempty"`
	Totals  protocol.Usage `json:"totals"` // counted so far, if the program counts on
	UsedMs  int64          `json:"usedMs"`
}

// stale says why a session cannot be continued; "" if nothing speaks against it.
func (k known) stale(found bool, program, cwd string, anyDir bool) string {
	switch {
	case !found:
		return "nothing is known of it"
	case k.Program != program:
		return "it belongs to " + k.Program
	case k.Cwd != cwd && !anyDir:
		return "it began in " + k.Cwd
	}
	return ""
}

// knownOf returns what is remembered of a session. A file that cannot be read is as good as none.
func (r *runner) knownOf(session string) (k known, found bool) {
	found, _ = r.sessions.Get(session, sessions.Adapter, &k)
	return k, found
}

// remember keeps what is known of a session.
func (r *runner) remember(k known) { r.report(r.sessions.Put(k.Session, sessions.Adapter, k, false)) }

func (k known) used() time.Time {
	if k.UsedMs == 0 {
		return time.Time{}
	}
	return time.UnixMilli(k.UsedMs)
}

// realDir is a directory without symbolic links, as programs see it.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// newUUID returns a random UUID (version 4).
func newUUID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
}

// Object reads the fields of a JSON object that v, a pointer to a struct, has. A field with
// another type than v's is skipped like an unknown one: the next version of a program may
// write it differently, and the rest still counts. It reports whether data is exactly one JSON
// object.
func Object(data []byte, v any) bool {
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return false
	}
	var other *json.UnmarshalTypeError
	err := json.Unmarshal(data, v)
	return err == nil || errors.As(err, &other)
}

// TextOf is what a JSON value says to a person: a string itself, content blocks a
// line each, an error its message; "" for null. Anything else is shown as it is
// written.
func TextOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []json.RawMessage
	if json.Unmarshal(raw, &blocks) == nil {
		lines := make([]string, len(blocks))
		for i, b := range blocks {
			lines[i] = blockText(b)
		}
		return strings.Join(lines, "\n")
	}
	var failure struct {
		Message string `json:"message"`
		Data    struct {
			Message string `json:"message"`
		} `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	switch Object(raw, &failure); {
	case failure.Message != "":
		return failure.Message
	case failure.Data.Message != "":
		return failure.Data.Message
	case len(failure.Error) > 0:
		return TextOf(failure.Error)
	}
	return string(raw)
}

// blockText is the text of a content block. Other kinds of block are named; anything else is
// shown as written.
func blockText(raw json.RawMessage) string {
	var b struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	switch Object(raw, &b); {
	case b.Text != nil:
		return *b.Text
	case b.Type != "":
		return "[" + b.Type + "]"
	}
	return TextOf(raw)
}

// Content is the text of a model's message in JSON: a string, or blocks of which
// some have text. Decoding it never fails.
type Content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = ""
	var blocks []struct {
		Text string `json:"text"`
	}
	if bytes.HasPrefix(data, []byte("[")) {
		_ = json.Unmarshal(data, &blocks) // what has no text in it says nothing
		for _, block := range blocks {
			*c += Content(block.Text)
		}
		return nil
	}
	*c = Content(blockText(data))
	return nil
}

// Arguments are the arguments of a tool: a JSON value, which some programs write as a string.
// A string that is not JSON is left as it is.
func Arguments(v any) any {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case json.RawMessage:
		text = string(v)
	default:
		return v
	}
	if text == "" {
		return nil
	}
	var value any
	if exactjson.Check([]byte(text)) != nil || json.Unmarshal([]byte(text), &value) != nil {
		return text
	}
	if inner, ok := value.(string); ok && inner != text {
		return Arguments(inner)
	}
	return value
}

// ClaudeBlocks are the texts in which a prompt reaches Claude Code, whichever way it
// is driven; plain tells whether it may go as one text.
//
// In a text claude takes "@" before a word for a mention of a file, and reads the
// file, wherever it is and whatever the permission is; it takes a text that begins
// with "/" for a command of its own. Prompts hold mail addresses, code and what
// other roles have said, and none of it is meant in that way. Of a message in
// several blocks claude looks at the last one only, so such a prompt goes in two, the
// second of which holds nothing that it could take for more than text. The model gets
// both as they are.
func ClaudeBlocks(prompt string) (parts []string, plain bool) {
	if !strings.ContainsRune(prompt, '@') && !strings.HasPrefix(strings.TrimSpace(prompt), "/") {
		return []string{prompt}, true
	}
	return apart(prompt), false
}

// apart cuts a prompt in two behind its last "@", at the end of a line if it can,
// else of a word, else anywhere. The second part begins with a letter or a digit. A
// prompt that cannot be cut so, such as "@?", is one part.
func apart(prompt string) []string {
	after := strings.LastIndexByte(prompt, '@') + 1
	if after == 0 {
		after = len(prompt) - len(strings.TrimLeftFunc(prompt, unicode.IsSpace)) + 1 // behind the "/"
	}
	for _, boundary := range []string{"\n", " ", ""} {
		for at := after; at < len(prompt); at++ {
			found := strings.Index(prompt[at:], boundary)
			if found < 0 {
				break
			}
			at += found
			cut := at + len(boundary)
			if first, _ := utf8.DecodeRuneInString(prompt[cut:]); unicode.IsLetter(first) || unicode.IsDigit(first) {
				return []string{prompt[:cut], prompt[cut:]}
			}
		}
	}
	return []string{prompt}
}

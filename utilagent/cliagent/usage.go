package cliagent

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/utilagent/internal/sessions"
)

// Usage is the usage that a program reports.
type Usage struct {
	// Usage excludes tokens read from a cache from its input tokens. Nil if not reported.
	*protocol.Usage
	// TokensOfSession and CostOfSession mean that the figures are running totals for the session, so earlier
	// totals are subtracted.
	TokensOfSession bool
	CostOfSession   bool
}

// Since returns the usage of one run and the session's new totals, given the session's earlier totals.
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
			rest := math.Round((*run.CostUSD-*before.CostUSD)*1e9) / 1e9 // beyond that only rounding errors
			run.CostUSD = &rest
		}
	}
	return run, totals
}

// minus subtracts token counts. ok is false if a result would be negative, because the program has reset its
// counters.
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

// spent sums the usage of a run's calls.
type spent struct {
	bill       protocol.Bill
	tookMs     int64
	unreported int // calls in which the model worked but no cost was reported
}

// add adds a call. A call that ended before the model replied has no known cost. A program with running
// totals reports missing usage in a later call.
func (s *spent) add(out tried) {
	s.tookMs += out.usage.DurationMs
	switch {
	case out.Usage.Usage != nil:
		if out.Usage.TokensOfSession && out.task.session != "" {
			s.unreported = 0
		}
		u := out.usage
		s.bill.Add(&u)
	case out.worked:
		s.unreported++
	}
}

// nothing reports whether the model did nothing in any call.
func (s *spent) nothing() bool { return s.bill.Parts == 0 && s.unreported == 0 }

// usage returns the sum for all calls, or nil if unknown.
func (s *spent) usage() *protocol.Usage {
	b := s.bill
	for range s.unreported {
		b.Add(nil)
	}
	u := b.Usage()
	if u != nil {
		u.DurationMs = s.tookMs
	}
	return u
}

// known holds the stored facts about a session of the program.
type known struct {
	Session string         `json:"session"`
	Program string         `json:"program"` // with its arguments if it is [Adapter.Commanded]
	Cwd     string         `json:"cwd"`     // resolved
	Thread  string         `json:"thread,omitempty"`
	Model   string         `json:"model,omitempty"`
	Version string         `json:"version,omitempty"`
	Totals  protocol.Usage `json:"totals"` // totals so far, if the program reports running totals
	UsedMs  int64          `json:"usedMs"`
}

// stale returns the reason why a session cannot be continued, or "".
func (k known) stale(found bool, program, cwd string, anyDir bool) string {
	switch {
	case !found:
		return "it is unknown"
	case k.Program != program:
		return "it belongs to " + k.Program
	case k.Cwd != cwd && !anyDir:
		return "it started in " + k.Cwd
	}
	return ""
}

// knownOf returns the stored facts about a session. An unreadable file counts as missing.
func (r *runner) knownOf(session string) (k known, found bool) {
	found, _ = r.sessions.Get(session, sessions.Adapter, &k)
	return k, found
}

// remember stores the facts about a session.
func (r *runner) remember(k known) { r.report(r.sessions.Put(k.Session, sessions.Adapter, k, false)) }

func (k known) used() time.Time {
	if k.UsedMs == 0 {
		return time.Time{}
	}
	return time.UnixMilli(k.UsedMs)
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

// Object decodes a JSON object into v, a pointer to a struct. A field of an unexpected type is skipped like
// an unknown one, because the next version of a program may write it differently. It reports whether data is
// exactly one JSON object.
func Object(data []byte, v any) bool {
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return false
	}
	var other *json.UnmarshalTypeError
	err := json.Unmarshal(data, v)
	return err == nil || errors.As(err, &other)
}

// TextOf returns a JSON value as readable text: a string itself, content blocks one per line, the message of
// an error, "" for null. Anything else is returned verbatim.
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

// blockText returns the text of a content block, the type of another block, or anything else verbatim.
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

// Content is the text of a model's message in JSON: a string, or the text blocks of a list. Decoding it never
// fails.
type Content string

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = ""
	var blocks []struct {
		Text string `json:"text"`
	}
	if bytes.HasPrefix(data, []byte("[")) {
		_ = json.Unmarshal(data, &blocks) // a value without text decodes to ""
		for _, block := range blocks {
			*c += Content(block.Text)
		}
		return nil
	}
	*c = Content(blockText(data))
	return nil
}

// Arguments returns a tool's arguments as a JSON value. Some programs encode them as a string; a string that
// is not JSON is returned as it is.
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

// ClaudeBlocks splits a prompt for Claude Code, however it is driven.
//
// Claude Code takes "@" before a word for a file mention and reads that file, wherever it is and whatever the
// permission; it takes a text that begins with "/" for a command. Prompts contain mail addresses, code and
// other roles' texts that mean neither. In a message with several blocks, Claude Code examines only the last
// one, so such a prompt is split in two, and the second part contains nothing it could misread. The model
// gets both parts unchanged.
func ClaudeBlocks(prompt string) (parts []string) {
	if !strings.ContainsRune(prompt, '@') && !strings.HasPrefix(strings.TrimSpace(prompt), "/") {
		return []string{prompt}
	}
	return apart(prompt)
}

// apart splits a prompt after its last "@": at the end of a line if possible, else of a word, else anywhere.
// The second part begins with a letter or a digit. A prompt without such a position, such as "@?", stays in
// one part.
func apart(prompt string) []string {
	after := strings.LastIndexByte(prompt, '@') + 1
	if after == 0 {
		after = len(prompt) - len(strings.TrimLeftFunc(prompt, unicode.IsSpace)) + 1 // after the "/"
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

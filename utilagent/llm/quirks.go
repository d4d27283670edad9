package llm

import (
	"regexp"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// quirks are the ways in which an endpoint differs from the most tolerant one.
// All are learnt from its errors, once each.
type quirks struct {
	noStream        bool // streams lose replies, or the config says so
	noStreamOptions bool
	noToolChoice    bool
	noJSONMode      bool
	noExtra         bool // refuses its own reasoning fields
	emptyReasoning  bool // wants reasoning_content on every assistant message
	bridge          bool // wants an assistant message between tool and user
	flatten         bool // refuses calls that it did not make itself
	noToolMarks     bool // takes no cache_control in results of tools
	noMarks         bool // takes none at all, or the config says so
}

// quirkRules tell by the text of a refusal which quirk is behind it.
var quirkRules = []struct {
	text func() *regexp.Regexp
	flag func(*quirks) *bool
}{
	{lazyregexp.New("(?i)missing.{0,20}reasoning_content|reasoning_content.{0,60}(required|must be)"),
		func(q *quirks) *bool { return &q.emptyReasoning }},
	{lazyregexp.New("(?i)(unsupported|not supported|unknown|unrecogni[sz]ed|not permitted|extra|additional|unexpected).{0,80}(reasoning|extra_content)"),
		func(q *quirks) *bool { return &q.noExtra }},
	{lazyregexp.New("(?i)(reasoning|extra_content).{0,80}(unsupported|not supported|unknown|unrecogni[sz]ed|not permitted|not allowed|unexpected)"),
		func(q *quirks) *bool { return &q.noExtra }},
	{lazyregexp.New("(?i)thought_?signature"), func(q *quirks) *bool { return &q.flatten }},
	{lazyregexp.New("(?i)stream_options"), func(q *quirks) *bool { return &q.noStreamOptions }},
	{lazyregexp.New("(?i)response_format"), func(q *quirks) *bool { return &q.noJSONMode }},
	{lazyregexp.New("(?i)tool_choice"), func(q *quirks) *bool { return &q.noToolChoice }},
	{lazyregexp.New("(?i)stream(ing)? (is |are )?(not |un)(supported|available)|(not|n't) support stream"),
		func(q *quirks) *bool { return &q.noStream }},
	{messageOrder, func(q *quirks) *bool { return &q.bridge }},
	{marksRefused, func(q *quirks) *bool { return &q.noToolMarks }},
	{marksRefused, func(q *quirks) *bool { return &q.noMarks }},
}

// marksRefused names cache_control, or the list that a content is for its sake.
var marksRefused = lazyregexp.New("(?i)cache[_ -]?control|content.{0,80}(must be|should be|expected|valid).{0,20}string")

// learn adapts to what an endpoint refused, and reports whether the question is
// worth asking again. Each quirk is learnt once, so this ends.
func (c *Client) learn(e *Error) bool {
	if e.Kind != Compat && e.Kind != MessageOrder {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rule := range quirkRules {
		flag := rule.flag(&c.quirks)
		if rule.text().MatchString(e.Message) && !*flag {
			*flag = true
			return true
		}
	}
	return false
}

// isQuirk reports whether a refusal is one that [Client.learn] may cure.
func isQuirk(message string) bool {
	for _, rule := range quirkRules {
		if rule.text().MatchString(message) {
			return true
		}
	}
	return false
}

// setStreaming switches streaming off or on for the questions that follow, and
// reports whether that changes anything.
func (c *Client) setStreaming(on bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := !c.quirks.noStream
	c.quirks.noStream = !on
	return was != on
}

func (c *Client) currentQuirks() quirks {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quirks
}

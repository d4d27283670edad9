package llm

import (
	"regexp"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// quirks are an endpoint's deviations from the most tolerant one. Each is learned from an error, once.
type quirks struct {
	noStream        bool // streams lose replies, or the config disables them
	noStreamOptions bool
	noToolChoice    bool
	noJSONMode      bool
	noExtra         bool // rejects its own reasoning fields
	emptyReasoning  bool // requires reasoning_content on every assistant message
	bridge          bool // requires an assistant message between tool and user
	flatten         bool // rejects calls that it did not make itself
	noToolMarks     bool // rejects cache_control in tool results
	noMarks         bool // rejects it everywhere, or the config disables it
}

// quirkRules map patterns in an error text to the quirk that causes it.
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

// marksRefused matches cache_control, or the list form of content that it requires.
var marksRefused = lazyregexp.New("(?i)cache[_ -]?control|content.{0,80}(must be|should be|expected|valid).{0,20}string")

// learn adapts to an endpoint's error and reports whether to retry. Each quirk is learned once, so this ends.
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

// isQuirk reports whether [Client.learn] may handle an error.
func isQuirk(message string) bool {
	for _, rule := range quirkRules {
		if rule.text().MatchString(message) {
			return true
		}
	}
	return false
}

// setStreaming turns streaming off or on for later requests and reports whether that changed anything.
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

package react

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// room says what was left out of a conversation: the messages from one place up to
// another, and what stands in for them.
type room struct {
	From    int    `json:"from,omitempty"`
	To      int    `json:"to,omitempty"`
	Keep    int    `json:"keep,omitempty"`    // the one between that stays: the task; 0: none does
	Summary string `json:"summary,omitempty"` // "": there is none, and a note says so

	// Shorten are the places of results, in sessions of before there were summaries.
	Shorten []int `json:"shorten,omitempty"`
}

// apply does it, and reports false if it does not fit the messages.
func (r room) apply(messages []llm.Message) ([]llm.Message, bool) {
	if r.From < 0 || r.From > r.To || r.To > len(messages) || r.Keep != 0 && (r.Keep <= r.From || r.Keep >= r.To) {
		return messages, false
	}
	for _, i := range r.Shorten {
		if i < 0 || i >= len(messages) || messages[i].Role != protocol.TurnTool {
			return messages, false
		}
	}
	messages = slices.Clone(messages) // a caller may still hold the old ones
	for _, i := range r.Shorten {
		messages[i].Content = leftOut(messages[i].Content)
	}
	if r.From == r.To {
		return messages, true
	}
	return slices.Replace(messages, r.From, r.To, r.instead(messages)...), true
}

// instead is what stands in for the messages.
func (r room) instead(messages []llm.Message) []llm.Message {
	if r.Keep == 0 {
		return []llm.Message{r.stand()}
	}
	return []llm.Message{llm.User(cutNote), messages[r.Keep], r.stand()}
}

// stand is the summary, or what says that there is none.
func (r room) stand() llm.Message {
	if r.Summary == "" {
		return llm.User(cutNote)
	}
	return llm.User(summaryHead + fence.Always(fence.Summary, r.Summary))
}

const (
	// cutNote stands in for messages of which there is no summary, or none here.
	cutNote = "[Earlier messages of this conversation were removed to make room.]"
	// summaryHead stands above a summary.
	summaryHead = "[Earlier messages of this conversation were removed to make room. Before that you wrote this summary of them. " +
		"Go on from there, and look again at what you need.]\n\n"
)

// standsIn reports whether a message stands in for others.
func standsIn(m llm.Message) bool {
	return m.Role == protocol.TurnUser && (m.Content == cutNote || strings.HasPrefix(m.Content, summaryHead))
}

// leftOut stands in for a tool's result.
func leftOut(content string) string {
	return fmt.Sprintf("[This result (%d bytes) was removed to make room. Make the call again if you need it.]", len(content))
}

// leaveOut makes room. It is one line of the file: a process that is killed has made
// all of it or none. The messages themselves stay in the file.
func (s *Session) leaveOut(l line) error {
	messages, ok := l.Room.apply(s.Messages)
	if !ok {
		return fmt.Errorf("session %s: there is nothing at %d to %d", s.ID, l.Room.From, l.Room.To)
	}
	b, err := json.Marshal(struct {
		AtMs  int64           `json:"atMs,omitempty"`
		Usage *protocol.Usage `json:"usage,omitempty"`
		Room  *room           `json:"room"`
	}{l.AtMs, l.Usage, l.Room})
	if err == nil {
		err = s.append(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	s.Messages = messages
	return nil
}

package react

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// room says what was left out of a conversation: the results at some places, or
// the messages from one place up to another.
type room struct {
	Shorten []int `json:"shorten,omitempty"`
	From    int   `json:"from,omitempty"`
	To      int   `json:"to,omitempty"`
}

// apply does it, and reports false if it does not fit the messages.
func (r room) apply(messages []llm.Message) ([]llm.Message, bool) {
	if r.From < 0 || r.From > r.To || r.To > len(messages) {
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
	return slices.Replace(messages, r.From, r.To, llm.User(cutNote)), true
}

// cutNote stands in for messages.
const cutNote = "[Earlier messages of this conversation were removed to make room.]"

// leftOut stands in for a tool's result.
func leftOut(content string) string {
	return fmt.Sprintf("[This result (%d bytes) was removed to make room. Make the call again if you need it.]", len(content))
}

// shorten replaces the results of tools at some places.
func (s *Session) shorten(at []int) error { return s.leaveOut(room{Shorten: at}) }

// cut replaces messages by a note.
func (s *Session) cut(from, to int) error { return s.leaveOut(room{From: from, To: to}) }

func (s *Session) leaveOut(r room) error {
	messages, ok := r.apply(s.Messages)
	if !ok {
		return fmt.Errorf("session %s: there is nothing at %v", s.ID, r)
	}
	b, err := json.Marshal(struct {
		Room room `json:"room"`
	}{r})
	if err == nil {
		err = s.append(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	s.Messages = messages
	return nil
}
